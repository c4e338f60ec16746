package queue

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// Acquire takes the lock of a key, or waits for it until ctx ends. Where nobody else of this process
// has or wants the key, it is one call, and all of it is here. Else the caller stands in the queue,
// which one goroutine serves.
//
// Whoever gets a Holder takes it up with Add, or declines it.
func (q *Queues) Acquire(ctx context.Context, r Request) (*holding.Holder, Waited, error) {
	e := q.enter(&r)
	w := e.waiter(ctx, &r)
	if e.machine.State() != Absent || w.Hot {
		e.step(Event{Kind: r.kind(), Waiter: &w.Waiter})
		return q.decided(ctx, e, w, r)
	}
	first := e.machine.Begin(&w.Waiter, r.Try, e.now())
	call := e.form(first)
	call.Tracked, w.asked = r.Tracked, true
	e.mu.Unlock()

	sent := time.Now()
	reply, err := q.Backend.Do(ctx, call)

	e.mu.Lock()
	now := time.Now()
	inTime := !lease.Past(now, lease.Deadline(sent, r.Terms.Length))
	if err == nil && reply.Yes && inTime && e.machine.Had(now.Sub(q.born), reply.Fence, reply.Top) {
		e.basis, e.granted = lease.New(r.Terms, sent), now
		t, err := e.hold(first.Owner, reply.Fence, reply.Top, r.Terms, false)
		e.mu.Unlock()
		return t, Waited{Asked: true}, err
	}
	e.answered(ctx, first, fcall.Outcome{Reply: reply, Err: err}, sent)
	return q.decided(ctx, e, w, r)
}

// hot reports whether the lock was refused here just now, and its hand-over would be received: then
// the first call is the one that joins the line. e.mu is held.
func (e *entry) hot() bool {
	if e.shard == nil || e.Inbox == nil {
		return false
	}
	at, ok := e.shard.refused[e.key]
	return ok && e.now()-at < memory && e.Inbox.Channel(e.Slot(e.key)) != ""
}
