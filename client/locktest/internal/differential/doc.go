// Package differential keeps the embedded Redis true to the real ones: its test sends the same
// random commands to a node of package redis and to a real server, and compares every reply, the
// fields and expiry of every key, and every message and invalidation, in the order of each
// connection. Times may differ by as much as the two were apart, and tokens must grow alike.
package differential
