// Package redis is a Redis in memory for tests. It loads function libraries unchanged (in
// gopher-lua) and speaks RESP2 and RESP3 over in-memory links, or over TCP. It works inside a
// testing/synctest bubble, where time is virtual, and outside.
//
// A [World] is a network with [Node]s in it. A client connects with the Dial function of a [Host],
// which fits rueidis.ClientOption.DialCtxFn. Faults of the network are methods of the World and
// name a [Path]; faults of a server are methods of its Node. All choices come from the seed in
// [Options].
//
// What it does not model, it refuses with an error that names it, and it calls Options.Unmodelled,
// so that the test fails.
//
// # Locks
//
// A Node has one mutex, which is never held over anything that blocks, nor (but in MoveKeys) with
// another Node's. Below it are only leaves: the mutexes of links, feeds and the World.
package redis
