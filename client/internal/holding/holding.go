// SPDX-License-Identifier: Apache-2.0

// Package holding is what this client has at the server, and who has it in this process.
//
// A Holding is one lock from the grant to its end: the owner string, the run of tokens, the lease.
// A Holder is the time of one holder with it: its token, the Refs that work under it, and why it
// ended. To pass a lock on inside the process replaces the Holder, and nothing else.
//
// One mutex guards both, but for what is atomic. It is the last in the order: nothing is called under it but
// the lease, and LostError, which makes an error.
package holding

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// Grant is what the server gave, and to whom.
type Grant struct {
	Name, Key, Owner string
	Hold             string // the id of a hold, for an owner of the caller's choice; "": a plain lock
	Terms            *lease.Terms
	First, Top       int64 // the run of tokens
	Slot             int   // of a limited or shared lock; else 0
	Since            time.Time
	Lease            lease.Lease
	Doubt            bool // a call of the owner has no answer, and may run late
	// LostError makes the cause of a holder's contexts.
	LostError func(h *Holder, why error, reason string) error
}

// Holding is a lock of this client. It is safe for concurrent use.
type Holding struct {
	Grant
	Final   *fcall.Done   // what its Release leaves for all, set by who releases it; nil: nothing
	Keep    time.Duration // how long that is good for, as its maker says; 0: as long as was asked for
	place   int           // in the keeper's heap, and guarded by the keeper; -1: it is not there
	Watched atomic.Bool   // the server's tracking is known to the lock, or whoever set this makes it so

	finally atomic.Pointer[final] // the last one that was given; &closed: they have run

	mu     sync.Mutex
	holder *Holder // the present one, or the last
	first  Holder  // nearly always the only one
	free   chan struct{}
}

// Holder is one holder's time with a lock.
type Holder struct {
	*Holding
	Fence int64
	Began time.Time
	// The Observer knows of it, and not yet of its end: whoever takes this back tells that.
	Shown atomic.Bool

	cause error // guarded by Holding.mu, as the rest; nil: it goes on
	lost  error // the cause, but nil if that is a shutdown's: the lock is still ours
	refs  []*Ref
	one   [1]*Ref
}

// Under are the holders of all locks that a context is under, the innermost first. ctx.Value(&under)
// fills it: each lock's context adds its own, and asks its parent.
type Under []*Holder

// Ref is one hold of a lock inside this process.
type Ref struct {
	Cancel  func(cause error) // ends it
	Context context.Context   // of the work

	Released atomic.Bool // whoever sets it Leaves
}

// New makes a Holding of a grant, and returns its first Holder, which has no Ref yet.
func New(g Grant) *Holder {
	h := &Holding{Grant: g, place: -1}
	h.first = Holder{Holding: h, Fence: g.First, Began: g.Since}
	h.holder = &h.first
	return h.holder
}

// Timer is of the keeper.
func (h *Holding) Timer() *int { return &h.place }

// Holder is the present holder, or the last.
func (h *Holding) Holder() *Holder {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.holder
}

// final is what Finally was given, and what it was given before.
type final struct {
	run    func()
	before *final
}

// closed stands in their place once they have run.
var closed final

// Finally runs f when the server has nothing of the lock any more, or this client stops caring: at
// once if that is so already.
func (h *Holding) Finally(f func()) {
	for {
		last := h.finally.Load()
		if last == &closed {
			f()
			return
		}
		if h.finally.CompareAndSwap(last, &final{f, last}) {
			return
		}
	}
}

// Close runs what Finally was given, once, the last one first.
func (h *Holding) Close() {
	for f := h.finally.Swap(&closed); f != nil && f != &closed; f = f.before {
		f.run()
	}
}

// Cause returns why the holder's time is over; nil: it is not.
func (t *Holder) Cause() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}

// Stands returns the local deadline, and why the lock is not the holder's any more, if it is not: by a
// shutdown it still is.
func (t *Holder) Stands() (until time.Time, cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Lease.Until(), t.lost
}

// Add adds a Ref: the first one, or with join one more beside those that there are. It fails if the
// holder's time is over.
func (t *Holder) Add(ref *Ref, join bool) error {
	h := t.Holding
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case t.cause != nil:
		return t.cause
	case join && (h.holder != t || len(t.refs) == 0 || !h.Lease.Working(time.Now())):
		return ErrNotHeld
	case t.refs == nil:
		t.refs = t.one[:0]
	}
	t.refs = append(t.refs, ref)
	return nil
}

// Leave takes a Ref away. last: nobody works under the lock any more, so it is to be passed on, or else End and
// given back. The rest is as Stands says it.
func (t *Holder) Leave(ref *Ref) (last bool, until time.Time, cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refs = slices.DeleteFunc(t.refs, func(other *Ref) bool { return other == ref })
	return t.Holding.holder == t && len(t.refs) == 0, t.Lease.Until(), t.lost
}

// Passable reports whether the lock can be passed on at now, with the next token. The k-th token of
// a run is used no earlier than k microseconds after the server gave the run: so the server's clock
// has passed every token that was used, and the rest of the run is free again whatever becomes of
// this process. Whoever gets a lock passed on has at least a quarter of the lease of one handed over.
func (h *Holding) Passable(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := h.holder.Fence + 1
	return next <= h.Top && h.Lease.Agreed() && h.Lease.Working(now) &&
		h.Lease.Until().Sub(now) >= min(h.Terms.Length, lease.Handover)/4 &&
		time.Duration(next-h.First)*time.Microsecond <= now.Sub(h.Since)
}

// Pass makes the next Holder, after the last Ref of the one before has left. If the lease has ended
// this very moment, so has the new holder's time.
func (h *Holding) Pass(now time.Time) *Holder {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.holder
	h.holder = &Holder{Holding: h, Fence: before.Fence + 1, Began: now}
	if !h.Lease.Pass(now) {
		if h.holder.cause, h.holder.lost = before.cause, before.lost; h.holder.cause == nil {
			h.end(ErrExpired, "")
		}
	}
	return h.holder
}

// End ends the lease, because nobody here wants the lock any more, and frees the slot. It returns the
// local deadline, and when the server's lease is over.
func (h *Holding) End() (until, latest time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until, latest = h.Lease.Until(), h.Lease.Latest()
	h.Lease.End()
	h.freed()
	return until, latest
}
