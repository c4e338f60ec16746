// Package client is the Go client of Holdfast, a distributed lock for Redis 7+ and Valkey. The
// lock's logic is a library of Redis Functions, loaded at deploy time (see the loader package and
// the holdfast command); this package calls it.
//
//	c, err := client.Open(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}}, client.Config{})
//	...
//	err = c.Do(ctx, "order:42", func(ctx context.Context) error {
//		return ship(ctx, 42) // ctx ends when the lock is lost
//	})
//
// [Client.Do], [Value] and [Wrap] hold a lock while a function runs. [Client.Acquire] waits for a
// [Lock] and [Client.TryAcquire] does not. A Lock is renewed until its [Lock.Release], and its
// [Lock.Context] ends before the lease can end on the server. [Lock.Fence] is the token for the
// resource that the lock guards. [Client.Inspect] shows who has a lock, and [Client.Break] takes it
// away. Every call returns when its context ends, or a moment later.
//
// The commonest jobs are made of that: [Client.Once] runs something at most once per interval,
// [Client.Lead] while this process leads, and [Client.DoAll] under several locks.
//
// # Errors
//
// Every error is of exactly one kind, for errors.Is, so the order of the cases of a switch does not
// matter:
//
//	kind              answer  what happened
//	ErrBusy           409     another has the lock, and the call did not want to wait
//	ErrTimeout        504     waited until MaxWait or the deadline, while the server answered
//	ErrUnreachable    503     the server is gone, silent, full, starting or refusing
//	ErrClosed         503     Close was called
//	ErrLost           500     the lock ended early: the work may have run beside another holder
//	ErrInvalid        500     the program or the deployment is wrong
//	context.Canceled  none    the caller's own context was cancelled: nobody reads an answer
//
// [BusyError], [WaitError] and [LostError] carry the data, for errors.As. More precise sentinels
// say which of the kind: [ErrExpired] and [ErrBroken] are ErrLost, [ErrLibrary] and [ErrDenied] are
// ErrInvalid.
//
// How it works stands in docs/how-it-works.md of the repository.
package client

// How the package is built, for those who change it: no part of its documentation.
//
// A lock lives in one object, held: what the server knows of it, from the grant to the end. Who has
// it in this process is its tenure, which counts the Locks of a re-entrant holder. The life of a held
// is a machine without clocks or goroutines (internal/lease, whose table is in state.go):
//
//	confirming   handed over for two seconds at most, until a renewal is answered
//	held         granted for a whole lease
//	stopping     MaxHold or MaxRenewals ended the work; still ours until the grace is over
//	giving back  released, or expired by this process's clock; the server may not know yet
//	released     the server knows, or its lease is over too
//	lost         the server says that it is another's, or was broken; or the client was closed
//
// In the order of a lock's life:
//
//   - acquire.go: TryAcquire, Acquire and polling.
//   - share.go: Acquire among the goroutines of this process, in a line for each key
//     (internal/local). The first one leads: it asks the server, and leads on while it holds the
//     lock. The others wait until the lock, or the lead, is theirs.
//   - wait.go: the leader's wait. It tries, then subscribes (internal/inbox) and calls holdfast_wait
//     again and again, until the reply says that the lock is its own, or a grant does. A grant that
//     is old, short or doubtful is confirmed by a renewal first.
//   - waitend.go: what the end of a wait means: the kinds of errors, and which outages are ridden out.
//   - attempt.go: one call: its options, its first try, and what it was granted, which is a held in
//     the heap of keepalive and its first Lock. unwanted.go: what it leaves behind when it gives up.
//   - held.go: the lock and its tenure, and all that takes their mutex. end is in one step with the
//     machine. ending.go: what follows without the mutex: contexts are cancelled, and the lock is
//     taken out of everything that knows it.
//   - lock.go: the Lock: its context, re-entry, and renewal by hand.
//   - keepalive.go: the scheduler: a heap, a timer, and each machine's Step.
//   - errand.go: what Step asks for (a renewal, a look, a giving back), as a call and as its answer.
//   - flights.go: the pipelines that carry errands.
//   - known.go: what makes a lock one that the server tells of, from its first renewal on, or after a
//     second.
//   - news.go: what the server tells without being asked, by owner (registry.go). A break ends the
//     lock. A changed key (internal/tracking) or a new subscription only makes it look.
//   - release.go: Release ends the Lock's context first. The last one passes the lock on (line.go: a
//     new tenure, with the next token), or gives it back. keepalive finishes what it had to leave.
//   - close.go: Close ends all contexts. Locks that are held are not given back: work may still go on
//     under them.
//
// Built upon it, without knowing what is in it: once.go, lead.go, watch.go, all.go, with
// together.go for those that one call takes. observe.go is told by the others; a tenure is shown to
// the Observer when its Lock is returned, and hidden by who tells of its end (held.go).
//
// A new reason to end the work begins in errors.go; a limit also needs an Action and an event of
// internal/lease, a line in endings (held.go), and one in limited (ending.go).
//
// With Config.Replicas each grant and each renewal is followed by WAIT on its own connection
// (internal/fcall, copies.go), and what was granted in any other way, by holdfast_wait or by a
// message, is renewed in that way before it counts (wait.go, confirm). Config.Guard is the library's
// work: it goes along with each request for a lock (attempt.go, request).
//
// With OpenQuorum the server is several (server.go, quorum.go; deployment.go is one of them):
// internal/quorum sends each call to all of them, and a majority decides. What is different here: an
// owner is used up once what it had was given back (attempt.go, concede); a grant in line is a turn,
// and no lock yet (wait.go, accept and queue); messages come from the server that has the lock's line
// (core.go, slot).
//
// All calls of the library are in internal/fcall, with the classes of their errors. A call whose
// context can end is left behind when it does, because rueidis does not look at the context
// everywhere.
//
// A mutex is taken only in the file that declares it. Those that are taken one under the other are
// taken in this order, and none is held over a call of the server or a channel that can block:
//
//	a shard of internal/local, then keepalive.mu, then held.mu
//
// The mutexes of the inbox, the tracking cache, the registry, flights, wires and doubts are leaves:
// nothing is taken under them. Of internal/quorum's, that of the ballots comes before that of one. A
// lock's context takes the first three when it is asked for its Err, so under a mutex only its Done is
// looked at.
