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
// The server's rules are in rules.go, for a lock (lock.go) and a call (call.go). What follows is there
// twice. For one server, or a primary with its replica: the clients' machines in machine.go and lease.go, and
// what is around them in client.go, all that can go wrong in fault.go, the state in state.go, and normal.go
// makes one of those states that differ in names only. For three servers, of which a majority decides:
// voter.go, member.go, poll.go and order.go. Both are explored by explore.go and progress.go.
//
// # What is modelled
//
// For one server, plain locks with single tokens: acquire, wait, renew, release, leave, break, and
// the end of a lease. What a client does is the queue machine's affair (client/internal/queue) and the lease
// machine's (client/internal/lease): the model runs these themselves. Around them it has the calls, of which
// an answer may be lost and a call held up beyond the lease; what gives back, in the background; the
// messages; and goroutines that come and go: one of each client, or two of the first. With Config.Strays a
// call may also be run after the client did something else. Clients die, and the server notices or does not.
// Subscriptions break. A replica lags by any number of writes: it catches up by leaps, at any time
// or never, so a promotion finds it at any former state of the primary.
//
// A machine's clock stands still: nobody needs to want the lock any longer, at any time, which is all that
// deadlines and verdicts over a silent server do. So these are not modelled, nor are runs of tokens, which
// are passed on inside a process: the machines' own walks have them. TestCells prints which cells of the
// queue machine's table are reached, and wants each in which an event does something.
//
// Time is ticks. A lease is two of them and a provisional one is one, so that the two differ; a
// client's deadline is as late as it may be, in the same tick as the server's end of the lease.
// Waiters ask once in a tick. That is too rarely for those who poll (a provisional lease that began
// at one question is over at the next), which one of the scenarios shows; the sound
// one has a longer provisional lease.
//
// A lock is one key, and a call of one touches no other, which the tie looks at: so locks are independent
// but for the last token that the server remembers. A grant of another lock raises that, and is a move of
// its own where the clock stands still.
//
// # A quorum
//
// Three servers, each by the same rules, know nothing of each other; two are a majority. A client asks
// for one vote, then all for theirs with the token of that one, and again with a higher token if one of
// them has that; renews by a majority, and gives back everywhere, under an owner string that is never
// used again. In each state it is looked for Exclusion, Tokens, Expiry and Progress.
//
//   - A call under way has no place in the state. Each server may run the calls of a round at any time
//     until the round ends, or never, and the answer may be lost; so calls are lost, late and repeated
//     without a number of them to count. Renewals and votes of an owner that holds the lock, and what
//     gives back an owner that is over, may be run at any time. Votes for an owner that is over are
//     Quorum.Strays. A client knows two owner strings: its own, and the one before.
//   - An answer is heard when the server gives it: a client may take its time to act on what it heard.
//   - A "no" is not counted, but for Progress: a client may give up at any time.
//   - Servers are lost as they do nothing; how many are is not limited, nor when they come back empty.
//   - Clocks run at one speed. Their times matter for tokens only: that of a server stands still, so that
//     its tokens grow by as little as possible, or it is ahead of all tokens. One that comes back empty
//     is above all tokens by the time that it votes, unless Quorum.Behind. Servers whose clocks refuse a
//     token that is too far ahead are not modelled.
//   - A release is a leave. A token is raised by as little as possible.
//   - Progress: somebody gets the lock. Who that is, is chance: one client can fail for ever, by bad luck.
//     The servers are asked in one order then, and the first one that has the lock as somebody's is
//     believed. Without Progress all may be asked in any order.
//   - Not modelled: breaks, and the pauses between questions. A vote that a server has lost is asked for
//     again at once, while the real client waits for the end of the lease that it was for.
//
// What the scenarios show: with a guard of a lease any server may come back empty at any time, and with
// a shorter one none may. Tokens fall only where clocks come back behind. And a server that loses a key
// (it is deleted, or its clock is stepped forward) while another one has not voted for the holder gives
// a second holder, until the first one's renewals fail.
//
// Not modelled but where it is said above or below: runs of tokens, MAXWAIT, RenewFor, minima, the
// records of breaks (they are made with FORGET), clocks that are stepped, keys that are deleted or evicted, slots that move, and more than one
// failover. The simulation and the contract's tests have those.
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
// added in tie_test.go (arguments). Guarded calls are made with GUARD by a server whose memory
// is just too young, just old enough, or begins with the call (guard_test.go). A quorum's calls are
// tied to the library too (raise_test.go).
//
// The clients of one server are the client's own machines. What is around those is written twice, and so is
// a quorum's client: nothing ties client.go to the client's queues and keeper, nor voter.go to package quorum,
// but for its leases. Their own tests look at those.
//
// # Running it
//
//	go test ./internal/model       # a minute or two
//	go test -v ./internal/model    # also prints states, edges, depths and traces
//
// Two clients are explored to the end where each call is answered; where answers are lost too, where two
// goroutines want one client's lock, and with three clients, it is the nearest states, some hundred thousand.
// With HOLDFAST_MODEL=full these go to the end, which takes hours, and some ten gigabytes with GOGC=25:
//
//	HOLDFAST_MODEL=full go test -v -timeout 8h -run Protocol ./internal/model
package model
