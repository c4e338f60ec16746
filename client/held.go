package client

import (
	"context"
	"errors"
	"sync"
	"time"
)

// held is one ownership of a lock by this client: an owner string, its lease, and the holds (Locks) on it. All of it is
// what this process believes, and it believes less than the server does: see margin.
type held struct {
	client *Client
	name   string
	key    string
	owner  string
	first  int64 // token that the server gave
	fence  int64 // this holder's: first, or a later one of the run up to top
	top    int64
	set    *settings
	room   *room // its line inside the process; nil for those that do not share (Try, WithOwner)

	mu       sync.Mutex
	deadline time.Time // the local end of the lease
	renewAt  time.Time // zero: never
	capAt    time.Time // the work ends (MaxHold); zero: never
	finishAt time.Time // the grace after that ends, and the lock is released; zero: not capped
	renewed  int
	watched  bool // the inbox hears of a break
	tracked  bool // the cache hears of changes of the key
	looking  bool // the renewal due is a look after such news: it does not count
	looked   time.Time
	busy     bool    // a renewal is under way
	lost     error   // why it ended; nil while held
	locks    []*Lock // the holds
	one      [1]*Lock

	index int       // in the heap of renewals, which guards both; -1: not there
	due   time.Time // when the renewals look at it next
}

// margin is what the local lease is shorter: for clocks that run at different speeds, and for the time from the check of
// the deadline to the effect. A hundredth and 2 ms are the Redlock algorithm's figures
// (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/).
func margin(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// newHeld is called with what the server granted: until is the local end of the lease.
func (a *attempt) newHeld(fence, block int64, sent, until time.Time) *held {
	h := &held{client: a.client, room: a.room, name: a.name, key: a.key, owner: a.owner, first: fence, fence: fence,
		top: fence + block - 1, set: a.set, deadline: until, index: -1}
	if !a.set.noRenewal {
		h.renewAt = sent.Add(min(a.set.renewal(), until.Sub(sent)/3))
	}
	if a.set.maxHold > 0 {
		h.capAt = sent.Add(a.set.maxHold)
	}
	return h
}

// heldKey finds the held lock in a context, by client and key: what makes re-entry possible. The zero heldKey finds the
// innermost.
type heldKey struct {
	client *Client
	key    string
}

// heldContext is the caller's context with the lock in it.
type heldContext struct {
	context.Context
	held *held
}

// Value returns the *held for its heldKey.
func (c *heldContext) Value(key any) any {
	if k, ok := key.(heldKey); ok && (k == heldKey{} || k.client == c.held.client && k.key == c.held.key) {
		return c.held
	}
	return c.Context.Value(key)
}

// Fence returns the fencing token of the lock that ctx was given by, in Do, Value, Wrap or Lock.Context: the innermost if
// there are several. It is 0 if ctx is under no lock.
func Fence(ctx context.Context) int64 {
	if h, ok := ctx.Value(heldKey{}).(*held); ok {
		return h.fence
	}
	return 0
}

// lock adds a hold. The caller adds h to the renewals.
func (h *held) lock(ctx context.Context, hold string) (*Lock, error) {
	l := &Lock{held: h, hold: hold, inner: heldContext{ctx, h}}
	l.ctx, l.cancel = context.WithCancelCause(&l.inner)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost != nil {
		l.cancel(h.lost)
		return nil, h.lost
	}
	if h.locks == nil {
		h.locks = h.one[:0] // nearly always the only one
	}
	h.locks = append(h.locks, l)
	return l, nil
}

// next is when the renewals must look at it again. h.mu is held.
func (h *held) next() time.Time {
	at := h.deadline
	if !h.busy && !h.renewAt.IsZero() {
		at = minTime(at, h.renewAt)
	}
	for _, t := range [...]time.Time{h.capAt, h.finishAt} {
		if !t.IsZero() {
			at = minTime(at, t)
		}
	}
	return at
}

// remaining is the lease that is left by this process's clock.
func (h *held) remaining() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost != nil {
		return 0
	}
	return max(0, time.Until(h.deadline))
}

// check returns why l is no longer held: released, or lost (also if the deadline has passed and nobody noticed yet).
func (h *held) check(l *Lock) error {
	h.mu.Lock()
	released, lost, passed := l.released, h.lost, !time.Now().Before(h.deadline)
	h.mu.Unlock()
	switch {
	case released:
		return ErrNotHeld
	case lost != nil:
		return lost
	case passed:
		return h.lose(ErrExpired, "")
	}
	return nil
}

// drop takes l off the holds. It returns until when the lease lasts, whether l was still among the holds, and whether
// the server is to be told: not if the lock went on to another goroutine.
func (h *held) drop(l *Lock) (deadline time.Time, found, tell bool) {
	h.mu.Lock()
	for i, other := range h.locks {
		if other == l {
			h.locks, found = append(h.locks[:i], h.locks[i+1:]...), true
			break
		}
	}
	l.released = true
	deadline, last := h.deadline, len(h.locks) == 0
	h.mu.Unlock()
	if last && found && l.hold == "" && h.room != nil && h.room.pass(h) {
		return deadline, true, false
	}
	if last && found { // a second Release must not touch what went on to the next holder
		h.forget()
	}
	return deadline, found, found
}

// forget ends all care for it: nothing of it is left to renew or to hear of, and the next of its room leads.
func (h *held) forget() {
	h.client.renewals.remove(h)
	h.mu.Lock()
	watched, tracked := h.watched, h.tracked
	h.mu.Unlock()
	if watched {
		h.client.inbox.unwatch(h)
	}
	if tracked {
		h.client.cache.unwatch(h)
	}
	if h.room != nil {
		h.room.leave(h, "", nil)
	}
}

// extend starts the local lease anew from the time the request was sent.
func (h *held) extend(sent time.Time) {
	h.mu.Lock()
	if until := sent.Add(h.set.lease - margin(h.set.lease)); until.After(h.deadline) {
		h.deadline = until
	}
	if !h.set.noRenewal {
		h.renewAt = sent.Add(h.set.renewal())
	}
	h.busy = false
	h.mu.Unlock()
	h.client.renewals.update(h)
}

// capped tells that the work was ended but the lock is still ours, until it is released or the grace is over.
func capped(why error) bool { return errors.Is(why, ErrMaxHold) || errors.Is(why, ErrMaxRenewals) }

// lose ends all holds with a LostError, once, and returns it: the first reason stays.
func (h *held) lose(why error, reason string) error {
	h.mu.Lock()
	first := h.lost == nil
	if first {
		h.lost = &LostError{Name: h.name, Owner: h.owner, Fence: h.fence, Reason: reason, Err: why}
	}
	lost := h.lost
	locks := append([]*Lock(nil), h.locks...)
	h.mu.Unlock()
	if first {
		for _, l := range locks {
			l.cancel(lost)
		}
	}
	if !capped(why) {
		h.forget()
	}
	return lost
}

// finish releases a lock whose work was ended by MaxHold or MaxRenewals: every hold that is left, the last with it.
func (h *held) finish() {
	h.mu.Lock()
	locks, deadline := h.locks, h.deadline
	h.locks = nil
	h.mu.Unlock()
	h.forget()
	if left := time.Until(deadline); left > 0 && len(locks) > 0 {
		h.client.detach(left, func(ctx context.Context) {
			for _, l := range locks {
				if err := h.client.giveBack(ctx, h, l.hold, deadline); err != nil {
					h.client.log.Warn("holdfast: releasing after the maximum hold failed; the lease will end it", "lock", h.name, "error", err)
				}
			}
		})
	}
}
