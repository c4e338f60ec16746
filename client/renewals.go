package client

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

const (
	renewBatch   = 256 // locks renewed by one pipeline
	renewFlights = 8   // pipelines under way at once: one stalled node must not hold up the others
)

// renewals is the one scheduler of a client: it ends leases on time, ends work that was capped, and renews what is due,
// many locks in one pipeline. No goroutine per lock, and none at all before the first lock.
type renewals struct {
	client *Client
	mu     sync.Mutex
	queue  heldHeap
	armed  time.Time // when the scheduler wakes by itself: only what is due earlier has to wake it
	wake   chan struct{}
	start  sync.Once
	done   sync.WaitGroup
	slots  chan struct{} // renewFlights
	ctx    context.Context
	cancel context.CancelFunc
}

func newRenewals(c *Client) *renewals {
	r := &renewals{client: c, wake: make(chan struct{}, 1), slots: make(chan struct{}, renewFlights)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// add puts h under the scheduler's care. It fails with ErrClosed after close.
func (r *renewals) add(h *held) error {
	r.mu.Lock()
	if r.ctx.Err() != nil {
		r.mu.Unlock()
		return ErrClosed
	}
	h.mu.Lock()
	h.due = h.next()
	h.mu.Unlock()
	heap.Push(&r.queue, h)
	early := h.due.Before(r.armed)
	r.start.Do(func() {
		r.done.Add(1)
		go r.run()
	})
	r.mu.Unlock()
	if early {
		r.poke()
	}
	return nil
}

// update looks at h again; it does nothing for one that was removed.
func (r *renewals) update(h *held) {
	r.mu.Lock()
	early := false
	if h.index >= 0 {
		h.mu.Lock()
		h.due = h.next()
		h.mu.Unlock()
		heap.Fix(&r.queue, h.index)
		early = h.due.Before(r.armed)
	}
	r.mu.Unlock()
	if early {
		r.poke()
	}
}

func (r *renewals) remove(h *held) {
	r.mu.Lock()
	if h.index >= 0 {
		heap.Remove(&r.queue, h.index)
	}
	r.mu.Unlock()
}

// replace puts next in the place of h. It returns false if h is not there: it was lost this very moment.
func (r *renewals) replace(h, next *held) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.index < 0 {
		return false
	}
	next.index, next.due = h.index, next.next()
	r.queue[next.index] = next
	h.index = -1
	heap.Fix(&r.queue, next.index)
	if next.due.Before(r.armed) {
		r.poke()
	}
	return true
}

func (r *renewals) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// close ends every lock's context with ErrClosed and waits for the scheduler and its pipelines.
func (r *renewals) close() {
	r.mu.Lock()
	r.cancel()
	all := r.queue
	r.queue = nil
	for _, h := range all {
		h.index = -1
	}
	r.mu.Unlock()
	for _, h := range all {
		h.lose(ErrClosed, "")
	}
	r.done.Wait()
}

func (r *renewals) run() {
	defer r.done.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due, wait := r.due(time.Now())
		for _, h := range due {
			r.act(h)
		}
		r.renew(due)
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-r.wake:
		case <-r.ctx.Done():
			return
		}
	}
}

// due takes what is due off the head of the queue (each is put back at its next time), at most some pipelines' worth, and
// returns how long to wait for the next.
func (r *renewals) due(now time.Time) (due []*held, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.queue) > 0 && len(due) < renewBatch*renewFlights {
		h := r.queue[0]
		if h.due.After(now) {
			break
		}
		due = append(due, h)
		h.mu.Lock()
		h.due = h.after(now)
		h.mu.Unlock()
		if h.due.After(now) {
			heap.Fix(&r.queue, 0)
		} else { // its lease is over
			heap.Pop(&r.queue)
		}
	}
	wait = time.Hour
	if len(r.queue) > 0 {
		wait = max(0, r.queue[0].due.Sub(now))
	}
	r.armed = now.Add(wait)
	return due, wait
}

// after is when h is next due once what is due now is done. h.mu is held.
func (h *held) after(now time.Time) time.Time {
	at := h.deadline
	for _, t := range [...]time.Time{h.renewAt, h.capAt, h.finishAt} {
		if t.After(now) && t.Before(at) {
			at = t
		}
	}
	return at
}

// act does what needs no server: ends the lease, or the work.
func (r *renewals) act(h *held) {
	now := time.Now()
	h.mu.Lock()
	expired := !now.Before(h.deadline)
	finished := !h.finishAt.IsZero() && !now.Before(h.finishAt)
	capped := h.lost == nil && !h.capAt.IsZero() && !now.Before(h.capAt)
	worn := h.lost == nil && !h.looking && h.set.maxRenewals > 0 && h.renewed >= h.set.maxRenewals && !h.renewAt.IsZero() && !now.Before(h.renewAt)
	if (capped || worn) && !expired {
		h.finishAt, h.capAt = now.Add(h.set.stopTime()), time.Time{}
		if worn {
			h.renewAt = time.Time{}
			h.finishAt = minTime(h.finishAt, h.deadline.Add(-margin(h.set.lease)))
		}
	}
	h.mu.Unlock()
	switch {
	case expired:
		h.lose(ErrExpired, "")
	case finished:
		h.finish()
	case capped:
		h.lose(ErrMaxHold, "")
		r.update(h)
	case worn:
		h.lose(ErrMaxRenewals, "")
		r.update(h)
	}
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// renew sends those of the due ones whose renewal is due, in pipelines of their own goroutines.
func (r *renewals) renew(due []*held) {
	batch := make([]*held, 0, min(len(due), renewBatch))
	now := time.Now()
	for _, h := range due {
		h.mu.Lock()
		send := !h.busy && !h.renewAt.IsZero() && !now.Before(h.renewAt) && now.Before(h.deadline)
		h.busy = h.busy || send
		h.mu.Unlock()
		if send {
			batch = append(batch, h)
		}
		if len(batch) == renewBatch {
			r.fly(batch)
			batch = make([]*held, 0, renewBatch)
		}
	}
	if len(batch) > 0 {
		r.fly(batch)
	}
}
