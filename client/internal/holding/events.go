// SPDX-License-Identifier: Apache-2.0

package holding

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// Ending is the end of a holder's time: what is left to do without the mutex.
type Ending struct {
	*Holder
	Cause error
	First bool // it had not ended before, but by a shutdown
	Gone  bool // the lock is not ours any more
	Halts bool // by a shutdown: its release, or a loss, is yet to come
	refs  []*Ref
}

// Cancel ends the contexts of the work.
func (e *Ending) Cancel() {
	for _, ref := range e.refs {
		ref.Cancel(e.Cause)
	}
}

// end ends the present holder's time. The first cause stays, unless that is a shutdown. h.mu is held.
func (h *Holding) end(why error, reason string) *Ending {
	t := h.holder
	e := &Ending{Holder: t, refs: slices.Clone(t.refs), First: t.lost == nil,
		Gone: h.Lease.State() > lease.Stopping}
	if e.First {
		t.lost = h.LostError(t, why, reason)
		t.cause = t.lost
	}
	e.Cause = t.cause
	return e
}

// endings are the actions that end the work, and why.
var endings = map[lease.Action]error{
	lease.Expire:          ErrExpired,
	lease.StopMaxHold:     ErrMaxHold,
	lease.StopMaxRenewals: ErrMaxRenewals,
	lease.GiveBack:        ErrAbandoned,
}

// Due is when Step must be called next; the zero time: never.
func (h *Holding) Due() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Lease.Due()
}

// Step does what is due at now, and returns the action that is left to do, and the end of the work if
// that was due. Once a renewal finds the contexts of all its work over, the grace begins.
func (h *Holding) Step(now time.Time) (lease.Action, *Ending) {
	h.mu.Lock()
	defer h.mu.Unlock()
	action := h.Lease.Step(now)
	if action == lease.Renew && h.abandoned() {
		h.Lease.Stop(now.Add(h.Terms.Grace))
	}
	if why, ends := endings[action]; ends {
		if h.Lease.State() == lease.Over {
			h.freed()
		}
		return action, h.end(why, "")
	}
	return action, nil
}

// abandoned reports whether there is work, and the contexts of all of it are over. h.mu is held.
func (h *Holding) abandoned() bool {
	for _, ref := range h.holder.refs {
		if ref.Context.Err() == nil {
			return false
		}
	}
	return len(h.holder.refs) > 0
}

// Tell tells the lease something, and wakes those that wait for the slot if it is free then.
func (h *Holding) Tell(f func(*lease.Lease)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(&h.Lease)
	if !h.Lease.Asking() {
		h.freed()
	}
}

// Lose ends the work, because a server says that the lock is not ours, or the client closes: tell is Refuse
// or End. It is nil if nobody wanted the lock any more.
func (h *Holding) Lose(why error, reason string, tell func(*lease.Lease)) *Ending {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.freed()
	if h.Lease.State() == lease.Over {
		return nil
	}
	tell(&h.Lease)
	return h.end(why, reason)
}

// Halt ends the contexts of the work because the client shuts down, and keeps the lock until it is
// released. It is nil if nobody wants the lock any more, or the contexts have ended already.
func (h *Holding) Halt(why error) *Ending {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Lease.State() > lease.Held || h.abandoned() {
		return nil
	}
	h.Lease.Stop(time.Time{})
	e := h.end(why, "")
	e.Halts, h.holder.lost = true, nil
	return e
}

// Extend takes the slot for a renewal by hand, of one who works under ref. While another renewal has it,
// busy is closed when that is over; then ask again. It is nil, and ok false, if the lock is not to be kept
// any more, or ref was released: the lock may be the next one's.
func (h *Holding) Extend(ref *Ref, now time.Time, d time.Duration) (length time.Duration, busy <-chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ref.Released.Load() {
		return 0, nil, false
	}
	if h.Lease.Asking() && h.Lease.Kept(now) {
		if h.free == nil {
			h.free = make(chan struct{})
		}
		return 0, h.free, false
	}
	length, ok = h.Lease.Extend(now, d)
	return length, nil, ok
}

// freed wakes those that wait for the slot. h.mu is held.
func (h *Holding) freed() {
	if h.free != nil {
		close(h.free)
		h.free = nil
	}
}
