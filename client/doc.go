// SPDX-License-Identifier: Apache-2.0

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
// away. Every call returns when its context ends, or a moment later. Rarely one that crosses with the
// end of its connection, or in a Cluster with the move of its slot to a node that does not answer,
// returns only when there is a new connection, or none in time (Dialer.Timeout).
//
// The commonest jobs are made of that: [Client.Once] runs something at most once per interval,
// [Client.Lead] while this process leads, and [Client.DoAll] under several locks. With [WithLimit] so
// many have a lock at a time, and with [WithShared] readers have it together.
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
//	ErrClosed         503     Close or Shutdown was called
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
// This package is the API. What runs by itself is below it, but for the goroutine that tells events;
// each part is in a package of its own, whose imports point downwards only:
//
//	queue        who of this process wants a key, and its place in the server's line
//	keeper       one scheduler: renews leases, ends contexts, undoes what may be left behind
//	holding      what we have at the server, and who has it here
//	lease        the life of one lease: a pure machine
//	inbox        messages; tracking: client-side caching; fcall: calls, replies, errors
//	replicas     a fcall.Backend that waits for replicas; package quorum is one of several servers
//	dial         what is changed about rueidis
//
// Two pure machines decide, and their tables of states and events are their packages' comments: that
// of a lease (internal/lease) and that of a key's queue (internal/queue). They have no clock and no
// goroutine. Tests walk through all of their states.
//
// An uncontended Acquire is queue.Queues.Acquire (queue/acquire.go): the key's queue is empty, so the call
// is made in the caller's goroutine, and the answer becomes a holding.Holding that the keeper has.
// keeper.Release takes it out again, and makes the second call.
//
// Where to look for what:
//
//   - A lost lock: keeper/renew.go (Lose: a server says so; step: the clock does), holding/events.go, and
//     events.go here, which tells.
//   - Clean-up: keeper/undo.go. Whatever is given back is an Undo in the end: one place, one backoff.
//   - Waiting: queue/doc.go has the table, queue/machine.go decides, queue/call.go asks the server.
//   - A message: inbox/message.go, then receive in queue/call.go.
//   - A reason to end the work: an Action of lease, a line in holding/events.go (endings), a sentinel in
//     holding/errors.go.
//   - Times: timing.go of a package, or the head of a file.
//
// Which goroutine: a call for a free lock, and a release, are made by their callers; a wait by one of its own
// (queue's launch), or behind a release by that one's; renewals, what is undone, and the later questions of
// those who wait by pipelines (keeper). The one that sees that a lease is over ends it: the keeper's
// scheduler, a pipeline, or a caller who asks, as by the Err of a lock's context. So contexts are
// cancelled, and Config's functions of the keeper are called, by any of these.
//
// Mutexes that are taken one under the other are taken in this order, and none is held over a call of
// the server or a channel that can block: a shard of queue, keeper, holding. Those of inbox, tracking and
// events are leaves. A lock's context takes all of them when it is asked for its Err, so under a
// mutex no lock's context is asked for more than its Done.
