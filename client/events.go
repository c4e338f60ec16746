// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/holding"
)

// events notify the log and the Observer. What the client's own goroutines find goes to a queue,
// which a goroutine empties that exists only then: a log that blocks holds up no renewal and no end of
// a context. The Observer is told at once of what a caller's goroutine does.
type events struct {
	log      *slog.Logger
	observer *Observer
	failing  func() bool // the last renewal of a lock was not answered

	outage                   atomic.Bool // renewals are not answered
	told                     bool        // what of that was told last; for the goroutine that tells
	refused, untracked, deaf sync.Once

	mu      sync.Mutex
	queue   []func()
	dropped int
	emptied chan struct{} // closed when the goroutine ends; nil: there is none
}

// maxEvents is how many wait to be told: more than the renewals of a client with 10,000 locks that come
// together, and a MiB.
const maxEvents = 8192

// post queues f. What there can be any number of is counted as left out where too many wait.
func (e *events) post(many bool, f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if many && len(e.queue) >= maxEvents {
		e.dropped++
		return
	}
	e.queue = append(e.queue, f)
	if e.emptied == nil {
		e.emptied = make(chan struct{})
		go e.empty(e.emptied)
	}
}

// close waits until all is told, or patience is over.
func (e *events) close(patience context.Context) {
	e.mu.Lock()
	emptied := e.emptied
	e.mu.Unlock()
	if emptied == nil {
		return
	}
	select {
	case <-emptied:
	case <-patience.Done():
	}
}

func (e *events) empty(done chan<- struct{}) {
	defer close(done)
	for {
		e.mu.Lock()
		todo, dropped := e.queue, e.dropped
		e.queue, e.dropped = nil, 0
		if len(todo) == 0 {
			e.emptied = nil
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		for _, f := range todo {
			f()
		}
		if dropped > 0 {
			e.log.Warn("holdfast: the logger or the observer is too slow; events were left out", "events", dropped)
		}
	}
}

// ended: a holder's time is over.
func (e *events) ended(end *holding.Ending) {
	now := time.Now()
	var lost *LostError
	if end.First && errors.As(end.Cause, &lost) && errors.Is(lost, ErrLost) {
		e.post(true, func() { e.lost(lost) })
	}
	if !end.Halts && end.Shown.CompareAndSwap(true, false) && e.observer.Lost != nil {
		told := tenure(end.Holder, now, end.Cause)
		// One for each Acquired, or what is counted by them drifts.
		e.post(false, func() { e.observer.Lost(*told) })
	}
}

// tenure is what the Observer is told of a holder's time.
func tenure(t *holding.Holder, now time.Time, err error) *Tenure {
	return &Tenure{Name: t.Name, Owner: t.Owner, Fence: t.Fence, Hold: t, Held: now.Sub(t.Began), Err: err}
}

// released: a holder released in time. It is told in the goroutine of the Release.
func (e *events) released(t *holding.Holder, now time.Time, passed bool, err error) {
	if e.observer == nil || !t.Shown.CompareAndSwap(true, false) || e.observer.Released == nil {
		return
	}
	told := tenure(t, now, err)
	told.Passed = passed
	e.observer.Released(*told)
}

// renewed: a renewal was answered, or was not.
func (e *events) renewed(t *holding.Holder, took time.Duration, err error) {
	if err == nil {
		e.answered()
	}
	if e.observer != nil && e.observer.Renewed != nil {
		r := Renewal{Name: t.Name, Hold: t, Took: took, Err: err}
		e.post(true, func() { e.observer.Renewed(r) })
	}
}

// unanswered: renewals were sent in vain.
func (e *events) unanswered(locks int, err error) {
	if errors.Is(err, context.Canceled) || !e.outage.CompareAndSwap(false, true) {
		return
	}
	e.post(false, func() { e.connection(locks, err) })
}

// answered: the server has answered, whatever it was asked. Where renewals fail still, that says nothing of them.
func (e *events) answered() {
	if !e.outage.Load() || e.failing() || !e.outage.CompareAndSwap(true, false) {
		return
	}
	e.post(false, func() { e.connection(0, nil) })
}

// connection tells what is so and was not told: what crossed with the opposite may have been queued
// behind it.
func (e *events) connection(locks int, err error) {
	outage := err != nil
	if e.told == outage || e.outage.Load() != outage {
		return
	}
	if e.told = outage; outage {
		e.log.Warn("holdfast: the server does not renew locks; they are held until their leases end, and lost then; renewals are tried "+
			"again: bring the server back before", "locks", locks, "error", err)
	} else {
		e.log.Info("holdfast: the server answers again; locks that were not reported lost are held and renewed: nothing is to be done")
	}
	if o := e.observer; o != nil && o.Connection != nil {
		o.Connection(Connection{err})
	}
}

func (e *events) unsubscribed(err error) {
	e.warn(&e.refused, "holdfast: the server permits no subscription; locks are safe, but waiters poll and get a lock later; "+
		"grant the user the channels of the prefix (functions/README.md, ACL)", "error", err)
}

func (e *events) unheard() {
	e.warn(&e.deaf, "holdfast: the server finds no subscriber on this client's channel; locks are safe, but waiters poll "+
		"and get a lock later; if the client sends SSUBSCRIBE to replicas, keep it at the primary")
}

func (e *events) noTracking(err error) {
	e.warn(&e.untracked, "holdfast: the server permits no client-side caching; locks are safe, but each try asks the server, and that a "+
		"held lock was taken away is noticed at its next renewal; grant the user CLIENT CACHING and TRACKING", "error", err)
}

// warn tells the log of what will not change, once.
func (e *events) warn(once *sync.Once, text string, args ...any) {
	once.Do(func() { e.post(false, func() { e.log.Warn(text, args...) }) })
}

// lost: a lock ended before its release.
func (e *events) lost(lost *LostError) {
	text := "holdfast: lock lost; its context is cancelled, and the work may have run beside another holder; check what it wrote, unless " +
		"the fencing token guards that"
	switch {
	case errors.Is(lost.Err, ErrMaxHold) || errors.Is(lost.Err, ErrMaxRenewals):
		text = "holdfast: lock ended by its limit; its context is cancelled, and it is released at the latest after Grace, whether the work " +
			"has stopped or not; make the work faster, or raise the limit"
	case errors.Is(lost.Err, ErrAbandoned):
		text = "holdfast: lock given back; its context had ended, and it was not released; release it, or give it another context " +
			"(WithLockContext)"
	}
	e.log.Warn(text, "lock", lost.Name, "fence", lost.Fence, "cause", lost.Err, "reason", lost.Reason)
}

// unreleased: a release did not reach the server.
func (e *events) unreleased(name string, err error) {
	e.post(true, func() {
		e.log.Warn("holdfast: release not confirmed; the work is over, and others get the lock when its lease ends at the latest; look at the "+
			"server if there are more of these", "lock", name, "error", err)
	})
}

// newLostError makes the cause of a holder's contexts.
func newLostError(t *holding.Holder, why error, reason string) error {
	return &LostError{Name: t.Name, Owner: t.Owner, Fence: t.Fence, Reason: reason, Err: why}
}
