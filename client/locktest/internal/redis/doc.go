// SPDX-License-Identifier: Apache-2.0

// Package redis is a Redis in memory for tests. It loads function libraries unchanged (in
// gopher-lua) and speaks RESP2 and RESP3 over in-memory links, or over TCP. It works inside a
// testing/synctest bubble, where time is virtual, and outside.
//
// A [World] is a network with [Node]s in it. A client connects with the Dial function of a [Host],
// which fits rueidis.ClientOption.DialCtxFn. Faults of the network are methods of the World and
// name a [Path]; faults of a server are methods of its Node. All choices come from the seed in
// [Options].
//
// # What it imitates
//
// Redis 7.0, Redis 8.0 and Valkey 8.1, where they differ ([Flavour]), as a client and a function library
// see them:
//
//   - functions: FUNCTION LOAD, DELETE, FLUSH and LIST, FCALL and FCALL_RO, the flags no-writes and
//     allow-oom, redis.call, pcall, error_reply and acl_check_cmd, struct with the formats d, I1 and I2.
//     Time stands still in a function, but for the steps of 7.0.
//   - hashes, strings, their expiry, in time and when somebody looks, and client-side caching (OPTIN).
//   - sharded channels, RESP2 and RESP3.
//   - replication, WAIT, restarts from what was saved, failovers in a Cluster,
//     ASK and MOVED, and slots that move.
//   - the words of errors, where clients look at them, and the order of replies, messages and invalidations.
//
// Package differential compares it with real servers.
//
// # What it does not
//
// A command or an option that it does not know, it refuses with an error that names it, and it calls
// Options.Unmodelled, so that the test fails. These it answers, and simplifies:
//
//   - A replica gets what keys and libraries are after a command or a function, not the commands. Offsets
//     count those, not bytes. Nobody replicates from a replica. Messages go to replicas in a Cluster only.
//   - A function may touch keys and channels of other slots. The library's do not: the contract's TestCluster
//     asks a real one.
//   - Everybody is the default user, who may do all.
//   - Elections, evictions, blocking commands, transactions and databases are missing. A test says who takes over,
//     and when the memory is full.
//   - Lua is gopher-lua, several times slower. A script is never too slow: [Busy] says that one is.
//
// # Locks
//
// A Node has one mutex, which is never held over anything that blocks, nor (but in MoveKeys) with
// another Node's. Below it are only leaves: the mutexes of links, feeds and the World.
package redis
