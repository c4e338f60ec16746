package client

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// look ends the lock if its lease is over by now, and returns why t ended, if it did.
func (t *tenure) look(now time.Time) error {
	until, cause := t.why()
	if cause != nil || !lease.Over(now, until) {
		return cause
	}
	t.held.keepalive.actNow(&t.held.entry, now)
	_, cause = t.why()
	return cause
}

// refused ends the lock: the server says that it is another's, or tells of a break. It returns why
// the lock ended.
func (h *held) refused(why error, reason string) error {
	e := h.lose(why, reason)
	h.ended(e)
	h.keepalive.update(&h.entry)
	return e.cause
}

// abandon ends the lock because the client closes, unless it is being given back.
func (h *held) abandon() {
	if e := h.desert(); e != nil {
		h.ended(e)
	}
}

// ended tells those whom the end of a tenure concerns.
func (h *held) ended(e *ending) {
	if e.first {
		for _, hold := range e.holds {
			hold.cancel(e.cause)
		}
		h.journal.lost(e.cause)
	}
	if e.tells != nil && h.observer.Lost != nil {
		h.observer.Lost(*e.tells)
	}
	if !e.ours {
		h.close()
	}
}

// close takes the lock out of everything that knows it in this process, once: the next one of its
// line leads. What the server gives to its owner after that is declined.
func (h *held) close() {
	if h.withdraw() {
		h.depart()
	}
}

// withdraw is the first part of close, which depart completes. It reports whether it was the first.
func (h *held) withdraw() (first bool) {
	by, first := h.shut()
	if first {
		h.forget(by)
		h.leaveLine()
	}
	return first
}

// depart lets grants be declined.
func (h *held) depart() {
	// else the server keeps the lock for this owner, or for another process
	if h.lined && h.hold == "" && h.terms.minHold == 0 {
		h.departed.add(h.owner, h.key)
	}
}

// leaveLine ends the lead of the process's line, once: the next one there leads.
func (h *held) leaveLine() {
	if h.unlead() {
		h.line.Leave(func(shows) turn { return turn{} })
	}
}

// forget takes the lock out of what tells of it.
func (h *held) forget(by acquainted) {
	if by.listed {
		h.registry.remove(h.owner, h)
	}
	if by.kept {
		h.inbox.Drop(h.slot())
	}
	if by.watched {
		h.cache.Unwatch(h.key)
	}
}

func (h *held) slot() uint16 { return h.core.slot(h.key) }

// limited reports whether the work was ended while the lock was still ours.
func limited(cause error) bool {
	return errors.Is(cause, ErrMaxHold) || errors.Is(cause, ErrMaxRenewals)
}
