// SPDX-License-Identifier: Apache-2.0

// Package keeper keeps leases alive, and undoes what may be left behind: the one scheduler of a
// client. It is a timer: there is no goroutine for a lock, and none at all while nothing is due.
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

	mu      sync.Mutex // of what each Undo plans too; before the mutexes of holdings
	queue   dueHeap
	lanes   map[lane]*waiting
	timer   *time.Timer // calls run
	armed   time.Time   // when: only what is due earlier has to reset it; the zero time: it runs
	seen    time.Time   // when it ran last
	closing bool
	undone  context.CancelFunc // nothing is left to be undone: Close waits for it; nil: it has not begun
	failing map[timed]bool     // locks whose last renewal was not answered, or not done

	done   sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
}

// New returns a Keeper of nothing.
func New(cfg Config) *Keeper {
	k := &Keeper{Config: cfg, failing: map[timed]bool{}, lanes: map[lane]*waiting{}, armed: never}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.timer = time.AfterFunc(glance, k.run)
	k.timer.Stop()
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
	return true
}

// Update looks at x again, after what is in it has changed: what is over is not kept any more.
func (k *Keeper) Update(x timed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.update(x, x.Due())
}

// update is Update where it is known when x is due. k.mu is held.
func (k *Keeper) update(x timed, due time.Time) {
	switch place := *x.Timer(); {
	case place < 0:
	case due.IsZero():
		heap.Remove(&k.queue, place)
		delete(k.failing, x)
		k.settled()
	default:
		k.queue[place].due = due
		heap.Fix(&k.queue, place)
		k.sooner(due)
	}
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

// sooner sets the timer for what is due earlier than it is set for. That can be gone by then: it runs all the
// same, or each lock that is taken and released would set it anew. k.mu is held.
func (k *Keeper) sooner(due time.Time) {
	if due.Before(k.armed) {
		pause := min(time.Until(due), glance)
		k.armed = time.Now().Add(pause)
		k.timer.Reset(pause)
	}
}

// Owned returns the Holdings of an owner for a key; "" is any.
func (k *Keeper) Owned(key, owner string) (found []*holding.Holding) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, x := range k.queue {
		if h, ok := x.timed.(*holding.Holding); ok && (key == "" || h.Key == key) && (owner == "" || h.Owner == owner) {
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
	return t.Cause()
}

// Leave takes a Ref of a holder's away, and ends the lock if its lease is over by now. The caller Cancels the Ref,
// with the cause if there is one.
func (k *Keeper) Leave(t *holding.Holder, ref *holding.Ref, now time.Time) (last bool, cause error) {
	last, until, cause := t.Leave(ref)
	if cause == nil && lease.Past(now, until) {
		k.act(t.Holding, now)
		_, cause = t.Stands()
	}
	return last, cause
}

func (k *Keeper) act(x timed, now time.Time) {
	switch x := x.(type) {
	case *holding.Holding:
		k.step(x, now)
	case *Undo:
		if k.tries(x, now) {
			k.send(x.Key, 0, false, sending{ride: &Ride{Call: x.call(), Answered: func(o fcall.Outcome, _ time.Time) {
				k.tried(x, o)
			}}, length: 6 * pipeWait})
		}
	}
	k.Update(x)
}

// run acts on what is due, and on all leases after the wall clock has run ahead of the monotonic clock, which
// stands still while the machine is suspended.
func (k *Keeper) run() {
	k.mu.Lock()
	if k.ctx.Err() != nil {
		k.mu.Unlock()
		return
	}
	k.done.Add(1)
	defer k.done.Done()
	now, seen := time.Now(), k.seen
	k.seen, k.armed = now, time.Time{}
	k.mu.Unlock()
	if now.Round(0).Sub(seen.Round(0))-now.Sub(seen) >= suspended {
		for _, x := range k.all() {
			k.act(x.timed, now)
		}
	}
	for x := k.head(time.Now()); x != nil; x = k.head(time.Now()) {
		k.act(x, time.Now())
	}
}

// all is what is in the heap now.
func (k *Keeper) all() dueHeap {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.queue)
}

// head returns what is due. If nothing is, it sends what was due, and sets the timer for what will be.
func (k *Keeper) head(now time.Time) timed {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.queue) > 0 && !now.Before(k.queue[0].due) {
		return k.queue[0].timed
	}
	if k.armed = never; len(k.queue) > 0 {
		k.sooner(k.queue[0].due)
	}
	for at, w := range k.lanes {
		k.begin(at, w)
	}
	return nil
}
