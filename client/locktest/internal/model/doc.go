// SPDX-License-Identifier: Apache-2.0

// Package model explores the lock's protocol exhaustively: all that a few clients, their messages
// and one or two servers can do, breadth first, in abstract time. In each state it looks whether
//
//   - two clients hold one lock by their own view (Exclusion),
//   - a client that waits and lives is never served, although nothing fails any more (Progress),
//   - a key has no expiry, or goes before its lease does (Expiry),
//   - a release or a leave ended another's lock (Ownership),
//   - a waiter that can be reached was overtaken (Order).
//
// Neither side is written a second time. The server's is the library itself: each different call is made
// with it once, on the embedded Redis (library.go; concrete.go makes a key of the model's lock, image.go
// reads one back). The clients' is the queue machine and the lease machine (machine.go, lease.go). Around
// these are what a client does with its calls and messages (client.go), all that can go wrong (fault.go),
// the state (state.go), and normal.go, which makes one of those states that differ in names only.
//
// # What is modelled
//
// One server, or a primary with its replica, and plain locks with single tokens: acquire, wait, renew,
// release, leave, break, and the end of a lease. What a client does is the queue machine's affair
// (client/internal/queue) and the lease machine's (client/internal/lease): the model runs these themselves.
// Around them it has the calls, of which an answer may be lost and a call held up beyond the lease; what
// gives back, in the background; the messages; and goroutines that come and go: one of each client, or two
// of the first. With Config.Strays a call may also be run after the client did something else. Clients die,
// and the server notices or does not. Subscriptions break. A replica lags by any number of writes: it
// catches up by leaps, at any time or never, so a promotion finds it at any former state of the primary.
//
// A machine's clock stands still: nobody needs to want the lock any longer, at any time, which is all that
// deadlines and verdicts over a silent server do. So these are not modelled, nor are runs of tokens, which
// are passed on inside a process: the machines' own walks have them, and reach each cell of the queue
// machine's table.
//
// Time is ticks. A lease is two of them and a provisional one is one, so that the two differ; a
// client's deadline is as late as it may be, in the same tick as the server's end of the lease.
// Waiters ask once in a tick. That is too rarely for those who poll (a provisional lease that began
// at one question is over at the next), which one of the scenarios shows; the sound
// one has a longer provisional lease.
//
// A lock is one key, and a call of one touches no other: so locks are independent but for the last token
// that the server remembers. Each grant has a microsecond of its own here, so no token is ahead of the clock.
//
// Not modelled: several servers of which a majority decides, runs of tokens, MAXWAIT, RenewFor, minima, the
// records of breaks (they are made with FORGET), tokens ahead of the clock, clocks that are stepped, keys that
// are deleted or evicted, slots that move, and more than one failover. The simulation and the contract's tests
// have those.
//
// # Joinable locks
//
// Two clients share an owner string, and each has a hold of its own; a third one is another owner
// (Config.Joint). They do not wait; a replica that lags is promoted. With a guard, nobody of another owner
// works beside a hold, because renewals name their hold: one that does not goes on under the lock of another
// hold, and is not told when that ends.
//
// # The levels
//
// Default: a lock is had when the primary has it. One failover with a lag gives a second holder, which is
// admitted, and must be found. Replicas: a grant and a renewal count when WAIT said that the replica has
// them. Guarded: a server grants, by acquire, wait or hand-over, only when its memory has been unbroken for
// Config.Guard; renewals, and repeats by the holder, always work. What it does when it may not grant is: it
// takes nobody into a line that does not exist, and it leaves an ended lock with its line. A memory begins
// with the failover. The library's begins with the first call after it that asks for its age, so it is
// never older than the model's: the library is told of the model's age by holdfast_memory.
//
// What the scenarios show of Guarded: a guard of a lease is enough for a promotion and for a restart
// with an empty memory, and a shorter one is not. It is not enough for a split brain. There the old
// primary must fall silent when it has not heard from its replica for Config.Contact, and the
// replica must wait for longer than that before it is promoted. If it does not wait, no guard is
// enough: the new primary renews a lock, which is no grant, and the old one sees its lease end and
// hands it to another.
//
// # From ticks to milliseconds
//
// A tick is as long as makes the library's provisional lease as long as the model's. A lock of the model
// stands for keys of any moment of a tick, so each call is made at the first and at the last millisecond of
// one: both must leave the same lock, to the millisecond, with the expiry that it should have and with a
// message that says what the key says. Where they do not, or what is left is no lock of the model, the
// exploration ends. So a library that is wrong by a millisecond is noticed (TestWrongsAreNoticed), as are
// flaws by what they lead to (TestFlawsAreFound). Two times are scaled: a line outlives its lease by two
// ticks, and not by a minute, and a silence of more than two ticks is one of more than five seconds.
//
// What is around the clients' machines is written twice: nothing ties client.go to the client's queues and
// keeper. Their own tests look at those.
//
// # Running it
//
//	go test ./internal/model       # less than a minute
//	go test -v ./internal/model    # also prints states, edges, depths and traces
//
// Two clients are explored to the end where each call is answered; where answers are lost too, where two
// goroutines want one client's lock, and with three clients, it is the nearest states.
package model
