package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/holdfast-go/holdfast/client/internal/local"
)

// held is what the server knows of one lock of this client, for its whole life: the owner, the run
// of tokens and the lease. Who has it in this process is its tenure; passing the lock on replaces
// that, and nothing else.
type held struct {
	*core
	name  string
	key   string
	owner string
	hold  string // the id of a hold, for an owner of the caller's choice; "": a plain lock
	terms *terms
	line  *line // inside the process; nil if it does not share
	first int64 // the token that the server gave
	top   int64 // the last one of its run
	since time.Time
	lined bool // the owner stood in the server's line

	entry entry // of keepalive

	mu      sync.Mutex
	machine lease.Lease
	tenure  *tenure // nil for what was given up before it was granted
	initial tenure  // nearly always the only one
	listed  bool    // the registry has it
	channel string  // the inbox counts it there; "": it does not
	watched bool    // the server's tracking tells of its key
	left    bool    // it does not lead the line of this process any more
	closed  bool    // nothing of it is left in this process
}

// tenure is one holder's time with a lock: its token, its holds in this process, and why it ended.
type tenure struct {
	held  *held
	fence int64
	began time.Time

	cause error      // guarded by held.mu, as the rest; nil: it goes on
	holds []*tenancy // of a re-entrant holder several
	one   [1]*tenancy
}

// tenancy is the part of a Lock that held.mu guards.
type tenancy struct {
	cancel   func(cause error) // ends the Lock's context
	released bool
}

// line is that of one lock. Its leader shows what it holds.
type (
	line   = local.Line[*held, turn, shows]
	lines  = local.Lines[*held, turn, shows]
	behind = local.Waiter[*held, turn, shows]
)

// shows is what a waiter shows to those who hand on.
type shows struct {
	terms *terms
	until context.Context // of its wait
}

// over reports whether a context has ended. It does not ask a lock's context to look at the clock,
// which takes mutexes.
func over(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// turn is what the head of the line gets: the lock itself, or the lead, or an error that ends all
// waiting.
type turn struct {
	tenure *tenure
	// the lead, and who stands in the server's line for this process already; "": nobody does
	owner string
	err   error
}

// next is when the machine is due.
func (h *held) next() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.machine.Due()
}

func (h *held) unwanted() bool { return h.tenure == nil }

// look ends the lock if its lease is over by now, and returns why t ended, if it did.
func (t *tenure) look(now time.Time) error {
	h := t.held
	h.mu.Lock()
	over := t.cause == nil && lease.Over(now, h.machine.Until())
	cause := t.cause
	h.mu.Unlock()
	if !over {
		return cause
	}
	h.keepalive.actNow(&h.entry, now)
	h.mu.Lock()
	defer h.mu.Unlock()
	return t.cause
}

// refused ends the lock: the server says that it is another's, or tells of a break. It returns why
// the lock ended.
func (h *held) refused(why error, reason string) error {
	h.mu.Lock()
	h.machine.Refused()
	e := h.end(why, reason)
	h.mu.Unlock()
	h.ended(e)
	h.keepalive.update(&h.entry)
	return e.cause
}

// abandon ends the lock because the client closes, unless it is being given back.
func (h *held) abandon() {
	h.mu.Lock()
	h.machine.Abandon()
	left := h.machine.Done() && h.tenure != nil
	var e ending
	if left {
		e = h.end(ErrClosed, "")
	}
	h.mu.Unlock()
	if left {
		h.ended(e)
	}
}

// ending is the end of a tenure: what is left to do without the mutex.
type ending struct {
	cause error
	holds []*tenancy // whose contexts are to be cancelled
	first bool       // the tenure had not ended before
	ours  bool       // the lock still is
}

// end ends the present tenure, in one step with the machine: h.mu is held. The first cause stays.
// The caller calls ended.
func (h *held) end(why error, reason string) ending {
	t := h.tenure
	e := ending{holds: slices.Clone(t.holds), first: t.cause == nil, ours: h.machine.State() <= lease.Stopping}
	if e.first {
		t.cause = &LostError{Name: h.name, Owner: h.owner, Fence: t.fence, Reason: reason, Err: why}
	}
	e.cause = t.cause
	return e
}

// ended tells those whom the end of a tenure concerns.
func (h *held) ended(e ending) {
	if e.first {
		for _, hold := range e.holds {
			hold.cancel(e.cause)
		}
		h.journal.lost(e.cause)
	}
	if !e.ours {
		h.close()
	}
}

// close takes the lock out of everything that knows it in this process, once: the next one of its
// line leads.
func (h *held) close() {
	h.mu.Lock()
	closed, listed, kept, watched := h.closed, h.listed, h.channel != "", h.watched
	h.closed = true
	h.mu.Unlock()
	if closed {
		return
	}
	h.forget(listed, kept, watched)
	// else the server keeps the lock for this owner, or for another process
	if h.lined && h.hold == "" && h.terms.minHold == 0 {
		h.departed.add(h.owner, h.key)
	}
	h.leaveLine()
}

// leaveLine ends the lead of the process's line, once: the next one there leads.
func (h *held) leaveLine() {
	h.mu.Lock()
	leads := h.line != nil && !h.left
	h.left = true
	h.mu.Unlock()
	if leads {
		h.line.Leave(func(shows) turn { return turn{} })
	}
}

// forget takes the lock out of what tells of it.
func (h *held) forget(listed, kept, watched bool) {
	if listed {
		h.registry.remove(h.owner, h)
	}
	if kept {
		h.inbox.Drop(h.slot())
	}
	if watched {
		h.cache.Unwatch(h.key)
	}
}

func (h *held) slot() uint16 { return h.core.slot(h.key) }

// fence is the token of the present holder.
func (h *held) fence() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tenure.fence
}

// limited reports whether the work was ended while the lock was still ours.
func limited(cause error) bool {
	return errors.Is(cause, ErrMaxHold) || errors.Is(cause, ErrMaxRenewals)
}
