// SPDX-License-Identifier: Apache-2.0

// Package polyglot has modules for callers in other languages, one folder for
// each, and tests that programs in all of them and in Go can share a lock on
// one server. The programs in testdata are the tests' workers:
//
//	worker HOST PORT hold LOCK LEASE_MS WAIT_MS
//	worker HOST PORT work LOCK LEASE_MS WAIT_MS COUNTER ROUNDS
//	worker HOST PORT value LOCK LEASE_MS WAIT_MS EVERY_S TEXT
//
// 'hold' takes the lock, prints 'held TOKEN SLOT', gives it back when its standard
// input ends, and prints 'released'; or it prints 'busy' or 'lost' and ends.
// Before it prints 'held' it forks, if its language can, and the child ends
// inside the block: a child that gave the lock back would make it 'lost'.
// 'work' takes the lock so many times, each time adds one to a counter by GET
// and SET, and prints the fencing token. 'value', in Python only, prints 'got' and a
// value in hex. If it makes that, of the text and two bytes that are no text, it prints
// 'making' before, and reads a line. A WAIT_MS of -1 is for ever. With
// CLUSTER in the environment the server is a node of a Cluster; LIMIT and SHARED
// there say how 'hold' takes the lock.
package polyglot
