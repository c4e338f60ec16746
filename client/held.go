package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
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
	seen  bool       // the Observer knows of it, and not yet of its end
	holds []*tenancy // of a re-entrant holder several
	one   [1]*tenancy
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

// turn is what the head of the line gets: the lock itself, or the lead, or an error that ends all
// waiting.
type turn struct {
	tenure *tenure
	// the lead, and who stands in the server's line for this process already; "": nobody does
	owner string
	err   error
}

// What follows is all that takes h.mu. It calls nothing but the machine, and returns what is left to
// do without the mutex.

// next is when the machine is due.
func (h *held) next() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.machine.Due()
}

func (h *held) unwanted() bool { return h.tenure == nil }

// ours reports whether the lock is this client's, as far as is known, also while it lingers.
func (h *held) ours() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.machine.State() <= lease.Stopping
}

// stands is the token of the present holder, and how long the lease lasts by this process's clock.
func (h *held) stands() (fence int64, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tenure.fence, h.machine.Until()
}

// holder is the present tenure; nil if its time is over.
func (h *held) holder() *tenure {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tenure == nil || h.tenure.cause != nil {
		return nil
	}
	return h.tenure
}

// why returns until when the lease lasts, and why t ended, if it did.
func (t *tenure) why() (until time.Time, cause error) {
	h := t.held
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.machine.Until(), t.cause
}

// add counts a hold: join, one more beside those who hold it already. It fails if the tenure is
// over.
func (t *tenure) add(hold *tenancy, join bool) error {
	h := t.held
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case t.cause != nil:
		return t.cause
	case join && (h.tenure != t || !h.machine.Join(time.Now())):
		return ErrNotHeld
	case t.holds == nil:
		t.holds = t.one[:0] // nearly always the only one
	}
	t.holds = append(t.holds, hold)
	return nil
}

// drop takes a hold away. last says that nobody works under the lock any more.
func (t *tenure) drop(hold *tenancy) (released, last bool, cause error) {
	h := t.held
	h.mu.Lock()
	defer h.mu.Unlock()
	released, hold.released = hold.released, true
	if i := slices.Index(t.holds, hold); i >= 0 && !released {
		t.holds = slices.Delete(t.holds, i, i+1)
		last = h.tenure == t && h.machine.Leave(time.Now())
	}
	return released, last, t.cause
}

// dropped reports whether a hold was released.
func (t *tenure) dropped(hold *tenancy) bool {
	t.held.mu.Lock()
	defer t.held.mu.Unlock()
	return hold.released
}

// show makes t known to the Observer, which is told of its end from now on. It returns why t has
// ended already, if it has: the caller tells that.
func (t *tenure) show() (cause error) {
	t.held.mu.Lock()
	defer t.held.mu.Unlock()
	t.seen = t.cause == nil
	return t.cause
}

// hide reports whether the caller is the one who tells the Observer of t's end.
func (t *tenure) hide() (tells bool) {
	t.held.mu.Lock()
	defer t.held.mu.Unlock()
	tells, t.seen = t.seen, false
	return tells
}

// told is what the Observer is told of a tenure that ended at now.
func (t *tenure) told(now time.Time, err error) *Tenure {
	return &Tenure{Name: t.held.name, Owner: t.held.owner, Fence: t.fence, Hold: t, Held: now.Sub(t.began), Err: err}
}

// refuse takes t away that nobody took up, in the place of drop.
func (t *tenure) refuse() (last bool, cause error) {
	h := t.held
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tenure == t && h.machine.Leave(time.Now()), t.cause
}

// succeed makes the next tenure, with the next token, if the lease lasts for least; nil if there can
// be none. The k-th token of a run is used no earlier than k microseconds after the server gave the
// run: so the server's clock has passed every token that was used, and the rest of the run is free
// again whatever becomes of this process.
func (h *held) succeed(now time.Time, least time.Duration) *tenure {
	h.mu.Lock()
	defer h.mu.Unlock()
	fence := h.tenure.fence + 1
	if h.machine.Length() != h.terms.Length || fence > h.top || time.Duration(fence-h.first)*time.Microsecond > now.Sub(h.since) {
		return nil
	}
	if !h.machine.Pass(now, least) {
		return nil
	}
	h.tenure = &tenure{held: h, fence: fence, began: now}
	return h.tenure
}

// end ends the present tenure, in one step with the machine: h.mu is held. The first cause stays.
// The caller calls ended.
func (h *held) end(why error, reason string) *ending {
	t := h.tenure
	e := &ending{holds: slices.Clone(t.holds), first: t.cause == nil, ours: h.machine.State() <= lease.Stopping}
	if e.first {
		t.cause = &LostError{Name: h.name, Owner: h.owner, Fence: t.fence, Reason: reason, Err: why}
	}
	e.cause = t.cause
	if t.seen {
		t.seen, e.tells = false, t.told(time.Now(), t.cause)
	}
	return e
}

// due does what is due at now: it returns what to send, or the end of the work, after which more
// can be due.
func (h *held) due(now time.Time) (lease.Action, *ending) {
	h.mu.Lock()
	defer h.mu.Unlock()
	action := h.machine.Step(now)
	if why, over := endings[action]; over {
		return action, h.end(why, "")
	}
	return action, nil
}

// lose ends the lock: it is another's, or was broken.
func (h *held) lose(why error, reason string) *ending {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.quorum != nil { // a minority may have it still: that keeps nobody out, and is missed where a server is lost
		h.machine.Outvoted(time.Now())
	} else {
		h.machine.Refused(time.Now(), h.tenure.began.Add(h.terms.minHold))
	}
	return h.end(why, reason)
}

// desert ends the lock because the client closes; nil if it is being given back.
func (h *held) desert() *ending {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.machine.Abandon(); !h.machine.Done() || h.tenure == nil {
		return nil
	}
	return h.end(ErrClosed, "")
}

// leaseLength is of the lease, or what was asked for, if that is less. What is left of MinHold is no
// measure of a call's time.
func (h *held) leaseLength() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := h.machine.Length(); n > 0 && !h.machine.Lingering() {
		return min(h.terms.Length, n)
	}
	return h.terms.Length
}

// renewal is what to renew for, and the channel to leave; ok is false if it was released meanwhile.
func (h *held) renewal() (length time.Duration, channel string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.machine.Length(), h.channel, h.machine.State() <= lease.Stopping
}

// note notes the answer to an action, or that there is none. It returns false if the lock is not
// ours any more; one that was released meanwhile is nobody's loss.
func (h *held) note(action lease.Action, sent time.Time, answered, yes bool) (ours bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !answered:
		h.machine.Failed(action, time.Now())
	case action == lease.GiveBack:
		h.returned(yes)
	case !yes:
		return h.machine.State() > lease.Stopping
	case action == lease.Look:
		h.machine.Looked()
	default:
		h.machine.Renewed(sent)
	}
	return true
}

// notice makes a look due soon.
func (h *held) notice(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.machine.Noticed(now)
}

// extend begins a renewal by hand; d 0: for as long as the last one. channel is to be left.
func (h *held) extend(now time.Time, d time.Duration) (length time.Duration, channel string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d == 0 {
		d = h.machine.Length()
	}
	return d, h.channel, h.machine.Extend(now, d)
}

// extended is note for such a renewal.
func (h *held) extended(sent time.Time, length time.Duration, answered, yes bool) (ours bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !answered:
		h.machine.ExtendFailed(time.Now(), length)
	case yes:
		h.machine.Extended(sent, length)
	}
	return !answered || yes || h.machine.State() > lease.Stopping
}

// stay begins to keep a lock that nobody holds until the time until, by a renewal for the length that it
// returns.
func (h *held) stay(t *tenure, now, until time.Time) (length time.Duration, channel string, ok bool, cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ok = h.machine.Linger(now, until)
	return h.machine.Length(), h.channel, ok, t.cause
}

// stays notes whether the server does so.
func (h *held) stays(sent time.Time, confirmed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if confirmed {
		h.machine.Lingers(sent)
	} else {
		h.machine.LingerFailed(time.Now())
	}
}

// giveUp reports whether the caller is the one who is to give the lock back.
func (h *held) giveUp() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.machine.GiveUp()
}

// postpone leaves the giving back to keepalive.
func (h *held) postpone() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.machine.Retry(time.Now())
}

// gaveBack notes what became of the giving back: taken, the server has taken it back. Else keepalive
// goes on with it: if the server said that it was not ours, later.
func (h *held) gaveBack(taken bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil || errors.Is(err, ErrLost) {
		h.returned(taken)
	} else {
		h.machine.Retry(time.Now())
	}
}

// returned notes the server's answer to a giving back. One that was denied is tried again, but for what
// was never granted here, and when the client closes. h.mu is held.
func (h *held) returned(taken bool) {
	if taken || h.tenure == nil || h.closing.Err() != nil {
		h.machine.GaveBack()
	} else {
		h.machine.Denied(time.Now())
	}
}

// strange reports whether the cache and the inbox have yet to hear of the lock.
func (h *held) strange() (watch, keep bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.closed && !h.watched && h.tracks(), !h.closed && h.channel == ""
}

// renews is a renewal as the library takes it. It names the hold, so that one that the server has
// forgotten is not renewed by way of another hold of the owner.
func (h *held) renews(ttl, channel string) fcall.Renewal {
	return fcall.Renewal{Owner: h.owner, TTL: ttl, Channel: channel, Fence: h.first, Hold: h.hold}
}

// tracks reports whether the server's tracking tells of the lock's key. It does not tell on the
// dedicated connections of those that wait for replicas: rueidis reads them only for an answer.
func (h *held) tracks() bool { return h.terms.copies.Replicas == 0 && h.cache.On() }

// acquaint notes that they have. It returns what is to be forgotten again: all of it if the lock was
// closed meanwhile, or the channel if it had one already.
func (h *held) acquaint(channel string, watched bool) (undo acquainted) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fresh := acquainted{listed: true, kept: channel != "", watched: watched}
	if h.closed {
		return fresh
	}
	undo.kept = fresh.kept && h.channel != ""
	h.listed, h.watched = true, h.watched || watched
	if fresh.kept {
		h.channel = channel
	}
	return undo
}

// acquainted says who knows a lock.
type acquainted struct{ listed, kept, watched bool }

// shut marks the lock closed. It returns who knows it, and false if it was closed before.
func (h *held) shut() (by acquainted, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first, h.closed = !h.closed, true
	return acquainted{h.listed, h.channel != "", h.watched}, first
}

// unlead ends its lead of the process's line. It returns false if it does not lead.
func (h *held) unlead() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	leads := h.line != nil && !h.left
	h.left = true
	return leads
}
