package client

import (
	"time"

	"github.com/holdfast-go/holdfast/functions"
)

// Inside one process only one goroutine at a time deals with the server for a lock: it leads. The
// others stand in a line of memory, first come first served. While the lease is good the lock goes
// from holder to holder there, each with the next token of a run that was reserved with the lock.
// After a bounded run it is given back, so that other processes get their turn. This is lock
// cohorting (Dice, Marathe, Shavit: Lock Cohorting, PPoPP 2012) applied to a lease.
const (
	passRun   = 1000                 // tokens reserved, and so passes in a row
	passSlice = 2 * time.Millisecond // no pass after this much of a run
)

// provisional is the longest lease of a lock handed over, until it is confirmed.
const provisional = functions.ProvisionalTTL * time.Millisecond

// passOn gives the lock, which nobody works under any more since t ended, to the head of the line.
// It returns false when it must go back to the server: the run is over, too little of the lease is
// left, or the next one asked for other terms.
func (h *held) passOn(t *tenure, now time.Time) bool {
	if now.Sub(h.since) > passSlice {
		return false
	}
	now = h.pace(t.fence+1, now)
	passed := h.line.HandOn(func(next shows) (turn, bool, bool) {
		if over(next.until) {
			return turn{}, false, true // it is about to give up
		}
		if *next.terms != *h.terms {
			return turn{}, false, false
		}
		heir := h.succeed(now, min(h.terms.Length, provisional)/4)
		return turn{tenure: heir}, heir != nil, false
	})
	if passed && h.terms.MaxHold > 0 {
		h.keepalive.update(&h.entry)
	}
	return passed
}

// pace waits until a token may be used, see succeed: a microsecond at most. The clock of a test may
// stand still.
func (h *held) pace(fence int64, now time.Time) time.Time {
	at := h.since.Add(time.Duration(fence-h.first) * time.Microsecond)
	for range 200 {
		if !now.Before(at) {
			break
		}
		now = time.Now()
	}
	return now
}

// decline gives a tenure on that nobody took up.
func (t *tenure) decline() {
	h, now := t.held, time.Now()
	last, cause := t.refuse()
	if cause != nil && !limited(cause) {
		h.keepalive.update(&h.entry) // another server may have it still
		return
	}
	if !last || cause == nil && h.passOn(t, now) {
		return
	}
	if h.giveUp() {
		h.postpone()
	}
	h.close()
	h.keepalive.update(&h.entry)
}
