// Package model explores the lock's protocol exhaustively: all that a few clients, their messages
// and one or two servers can do, breadth first, in abstract time. In each state it looks whether
//
//   - two clients hold one lock by their own view (Exclusion),
//   - the token of a new holder is not above those of all before it (Tokens),
//   - a client that waits and lives is never served, although nothing fails any more (Progress),
//   - a key has no expiry, or goes before its lease does (Expiry),
//   - a release or a leave ended another's lock (Ownership),
//   - a waiter that can be reached was overtaken (Order).
//
// The server's rules are in rules.go, the clients' in client.go, and all that can go wrong in
// fault.go. The explorer is in explore.go, progress.go and trace.go; normal.go makes one state of
// those that differ in names only.
//
// # What is modelled
//
// Plain locks with single tokens: acquire, wait, renew, release, leave, break, and the end of a
// lease. A client repeats a call whose answer takes too long, with the same owner; a reply may be
// lost, and a call may be held up beyond the lease. With Config.Strays a call may also be run after
// the client did something else. Clients die, and the server notices or does not. Subscriptions
// break. A replica lags by any number of writes: it catches up by leaps, at any time or never, so a
// promotion finds it at any former state of the primary.
//
// Time is ticks. A lease is two of them and a provisional one is one, so that the two differ; a
// client's deadline is as late as it may be, in the same tick as the server's end of the lease.
// Waiters ask once in a tick. That is too rarely for those who poll (a provisional lease that began
// at one question is over at the next), which one of the scenarios shows; the sound
// one has a longer provisional lease.
//
// A lock is one key, and a call of one touches no other, so locks are independent but for the last
// token that the server remembers and for the clients, which have one acquisition at a time. Two
// locks are explored too.
//
// Not modelled: joinable locks, runs of tokens, max_wait_ms, RenewFor and Linger, clocks that are
// stepped, keys that are deleted or evicted, slots that move, and more than one failover. The
// simulation and the contract's tests have those.
//
// # The levels
//
// Default: a lock is had when the primary has it. One failover with a lag gives a second holder,
// which is admitted, and must be found. Replicas: a grant and a renewal count when WAIT said that
// the replica has them. Guarded: a server grants, by acquire, wait or hand-over, only when its
// memory has been unbroken for Config.Guard; renewals, and repeats by the holder, always work. What
// it does when it may not grant is: it takes nobody into a line that does not exist, and it leaves
// an ended lock with its line. A memory begins with the failover. The library's begins with the
// first call after it that asks for its age, so it is never older than the model's.
//
// What the scenarios show of Guarded: a guard of a lease is enough for a promotion and for a restart
// with an empty memory, and a shorter one is not. It is not enough for a split brain. There the old
// primary must fall silent when it has not heard from its replica for Config.Contact, and the
// replica must wait for longer than that before it is promoted. If it does not wait, no guard is
// enough: the new primary renews a lock, which is no grant, and the old one sees its lease end and
// hands it to another.
//
// # The tie to the code
//
// The tests explore some configurations and run each different call that they saw, in the state in
// which it was seen, with the real library on the embedded Redis; the reply, the key, its expiry and
// the message must be what rules.go says. When the library's rules change, the tie fails until
// rules.go follows, and the exploration then judges the new rules. More arguments of a function are
// added in tie_test.go (arguments). Guarded calls are made with guard_ms by a server whose memory
// is just too young, just old enough, or begins with the call (guard_test.go). The clients'
// deadlines are tied to the client's lease machine in the same way (lease_test.go).
//
// # Running it
//
//	go test ./internal/model       # under a minute
//	go test -v ./internal/model    # also prints states, edges, depths and traces
//
// With HOLDFAST_MODEL=full it explores more clients for each fault, which takes about half an hour
// and some gigabytes:
//
//	HOLDFAST_MODEL=full go test -v -timeout 3h -run Protocol ./internal/model
package model
