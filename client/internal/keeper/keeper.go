// SPDX-License-Identifier: Apache-2.0

// Package keeper keeps leases alive, and undoes what may be left behind: the one scheduler of a
// client. There is no goroutine for a lock, and none at all before the first one.
//
// It calls each lease's Step when that is due, ends the contexts of work whose time is over, and sends
// what is left to do, many locks in one pipeline. A Holding is in its heap from Add until its lease
// is over, and then, or when a Release has had no answer, an Undo until the server has answered.
package keeper

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/holdfast-go/holdfast/client/internal/tracking"
)

// Config is what a Keeper needs. Its functions are called without its mutex, by its own goroutines and by
// those that call it: they must not block, and call nobody else's code.
type Config struct {
	Backend fcall.Backend
	Cache   *tracking.Cache
	Closed  error // the cause of contexts that end by Close

	// OnEnded: a holder's time is over. The contexts of its work have ended.
	OnEnded func(*holding.Ending)
	// OnGone: the lock is not ours any more.
	OnGone func(*holding.Holding)
	// OnRenewed: a renewal was answered, or was not.
	OnRenewed func(t *holding.Holder, took time.Duration, err error)
	// OnUnanswered: so many renewals were sent in vain.
	OnUnanswered func(locks int, err error)
}

// timed is what is in the heap: a *holding.Holding or an *Undo.
type timed interface {
	Due() time.Time // the zero time: never again
	Timer() *int    // its place in the heap; -1: it is not there
}

// Keeper is safe for concurrent use.
type Keeper struct {
	Config

	mu      sync.Mutex // before the mutexes of what is in the heap
	queue   dueHeap
	lanes   map[lane]*waiting
	armed   time.Time // when the scheduler wakes by itself: only what is due earlier has to wake it
	closing bool
	undone  chan struct{} // Close waits for it: nothing is left to be undone
	start   sync.Once
	failing map[timed]bool // locks whose last renewal was not answered, or not done

	wake   chan struct{}
	done   sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
}

// New returns a Keeper of nothing.
func New(cfg Config) *Keeper {
	k := &Keeper{Config: cfg, wake: make(chan struct{}, 1), failing: map[timed]bool{}, lanes: map[lane]*waiting{}}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k
}

// Add begins to keep a Holding that nobody else knows yet. It returns false after Close.
func (k *Keeper) Add(h *holding.Holding) bool { return k.add(h, h.Lease.Due(), false) }

// add puts x into the heap.
func (k *Keeper) add(x timed, due time.Time, undo bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx.Err() != nil || k.closing && !undo {
		return false
	}
	*x.Timer() = len(k.queue)
	k.queue = append(k.queue, dueItem{x, due})
	heap.Fix(&k.queue, *x.Timer())
	k.sooner(due)
	k.start.Do(func() { k.done.Go(k.run) })
	return true
}

// Update looks at x again, after what is in it has changed: what is over is not kept any more.
func (k *Keeper) Update(x timed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	place := *x.Timer()
	if place < 0 {
		return
	}
	due := x.Due()
	if due.IsZero() {
		heap.Remove(&k.queue, place)
		delete(k.failing, x)
		k.settled()
		return
	}
	k.queue[place].due = due
	heap.Fix(&k.queue, place)
	k.sooner(due)
}

// fails notes whether the last renewal of a lock failed. One that is not kept any more has none.
func (k *Keeper) fails(h *holding.Holding, fails bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if delete(k.failing, h); fails && *h.Timer() >= 0 {
		k.failing[h] = true
	}
}

// Failing reports whether there are locks whose last renewal failed.
func (k *Keeper) Failing() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.failing) > 0
}

// sooner wakes the scheduler for what is due before it would wake by itself. k.mu is held.
func (k *Keeper) sooner(due time.Time) {
	if due.Before(k.armed) {
		k.armed = due
		k.poke()
	}
}

// Owned returns the Holdings of an owner for a key.
func (k *Keeper) Owned(key, owner string) (found []*holding.Holding) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, x := range k.queue {
		if h, ok := x.timed.(*holding.Holding); ok && h.Key == key && (owner == "" || h.Owner == owner) {
			found = append(found, h)
		}
	}
	return found
}

// Check ends the lock if its lease is over by now, whether or not the scheduler has run, and returns why it is not
// ours any more.
func (k *Keeper) Check(t *holding.Holder, now time.Time) (cause error) {
	until, cause := t.Stands()
	if !lease.Past(now, until) {
		return cause
	}
	k.act(t.Holding, now)
	k.poke() // for what is left to send
	return t.Cause()
}

// Leave takes a Ref of a holder's away, and ends the lock first if its lease is over by now.
func (k *Keeper) Leave(t *holding.Holder, ref *holding.Ref, now time.Time) holding.Left {
	_ = k.Check(t, now)
	return t.Leave(ref)
}

func (k *Keeper) poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *Keeper) act(x timed, now time.Time) {
	switch x := x.(type) {
	case *holding.Holding:
		k.step(x, now)
	case *Undo:
		if x.step(now) {
			k.send(x.Key, 0, false, sending{ride: &Ride{Call: x.call(), Answered: func(o fcall.Outcome, _ time.Time) {
				x.answered(o)
				k.Update(x)
			}}, length: 6 * pipeWait})
		}
	}
	k.Update(x)
}

func (k *Keeper) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for seen := time.Now(); ; {
		seen = k.awake(seen)
		x, pause := k.head(time.Now())
		if x != nil {
			k.act(x, time.Now())
			continue
		}
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-k.wake:
		case <-k.ctx.Done():
			return
		}
	}
}

// awake acts on all leases after the wall clock has run ahead of the monotonic clock, which stands
// still while the machine is suspended. It returns the time.
func (k *Keeper) awake(seen time.Time) time.Time {
	now := time.Now()
	if now.Round(0).Sub(seen.Round(0))-now.Sub(seen) < suspended {
		return now
	}
	for _, x := range k.all() {
		k.act(x.timed, now)
	}
	return now
}

// all is what is in the heap now.
func (k *Keeper) all() dueHeap {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.queue)
}

// head returns what is due, or nil and how long to wait for the next. What was due until then is sent.
func (k *Keeper) head(now time.Time) (timed, time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	// What it was to wake for can be gone: it wakes all the same, or each lock that is taken and released
	// would wake it anew.
	pause := k.armed.Sub(now)
	if pause <= 0 {
		pause = time.Hour
	}
	if len(k.queue) > 0 {
		due := k.queue[0].due.Sub(now)
		if due <= 0 {
			return k.queue[0].timed, 0
		}
		pause = min(pause, due, glance)
	}
	k.armed = now.Add(pause)
	for at, w := range k.lanes {
		k.begin(at, w)
	}
	return nil, pause
}
