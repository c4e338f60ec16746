// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// Request is what one call wants.
type Request struct {
	Name, Key   string
	Terms       *lease.Terms
	Owner       string // of the caller's choice: the lock is joinable; "": a fresh one
	Try         bool   // one call, and no place in line
	Fresh       bool   // Try: ask the server, whatever is known here
	Tracked     bool   // Try: the server tells when the answer changes
	GiveUpEarly bool   // do not wait for longer than the context may

	alone bool // a try beside the queue: a call of its own, by an owner of its own
}

// Waited is what a call knew when it ended.
type Waited struct {
	Asked    bool         // the server was asked for this call
	Position int          // in the server's line; 0: not there, or behind another goroutine
	Last     *fcall.Reply // who had the lock when last heard; nil: never heard, or, if the call got it, nobody had it
}

// Acquire takes the lock of a key, or waits for it until ctx ends. Where nobody else of this process
// has or wants the key, it is one call of its own. Else the caller stands in the queue. Who does not want it
// alone, or wants its value, has a queue, and so a place in the server's line, of its own.
//
// Whoever gets a Holder takes it up with Add, or declines it.
func (q *Queues) Acquire(ctx context.Context, r Request) (*holding.Holder, Waited, error) {
	e := q.enter(&r)
	w, now := e.waiter(ctx, &r), time.Now()
	e.step(now, Event{Kind: Enter, Waiter: w})
	if e.due {
		e.due, w.Asked = false, true
		e.make(ctx, e.machine.call, r.Tracked, now)
	}
	if !w.done {
		e.await(ctx, w)
	}
	holder, waited, err := w.holder, w.Waited, w.err
	e.mu.Unlock()
	if err == errOwn {
		r.alone = true
		return q.Acquire(ctx, r)
	}
	return holder, waited, err
}

// enter returns the queue of the key, with its mutex held.
func (q *Queues) enter(r *Request) *entry {
	s := q.shard(r.Key)
	if r.Owner != "" || r.alone || r.Terms.Crowd != 0 || r.Terms.Valued { // a queue of one
		s = &shard{}
	}
	s.mu.Lock()
	e := s.keys[r.Key]
	if e == nil {
		e = &entry{Queues: q, shard: s, key: r.Key, fixed: r.Owner}
		if e.machine.Fresh = e.fresh; s.keys != nil {
			s.keys[r.Key] = e
		}
	}
	return e
}

// waiter returns a place for the caller's goroutine. e.mu is held.
func (e *entry) waiter(ctx context.Context, r *Request) *Waiter {
	w := &e.first
	if e.machine.State() != Absent {
		w = &Waiter{}
	}
	w.Request = *r
	at := time.Duration(e.refusal().Load())
	w.Hot = !r.Try && e.Inbox != nil && at > 0 && e.now()-at < memory && e.Inbox.Channel(e.Backend.Slot(e.key)) != ""
	if at, ok := ctx.Deadline(); ok {
		w.Until = max(1, at.Sub(time.Now().Add(-e.now()))) // born may be by a wall clock that was set since
	}
	return w
}

// await blocks until the waiter's call is decided. e.mu is held, but not while it blocks.
func (e *entry) await(ctx context.Context, w *Waiter) {
	w.turn = make(chan struct{})
	e.mu.Unlock()
	var ended error
	select {
	case <-w.turn:
	case <-ctx.Done():
		ended = ctx.Err()
	case <-e.Closing.Done():
	}
	e.mu.Lock()
	switch {
	case w.done:
	case ended != nil:
		e.end(w, ended)
	default:
		e.step(time.Now(), Event{Kind: Close})
	}
}
