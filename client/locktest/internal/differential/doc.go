// SPDX-License-Identifier: Apache-2.0

// Package differential keeps the embedded Redis true to the real ones: its test sends the same
// random commands to a node of package redis and to a real server, and compares every reply, the
// fields and expiry of every key, and every message and invalidation, in the order of each
// connection. Times may differ by as much as the two were apart, and tokens must grow alike.
//
// What ends in a sequence has ended before anybody looks. When a lease ends by itself is shown by
// the tests of package redis.
//
// A server without memory, functions and patterns are compared one by one.
package differential
