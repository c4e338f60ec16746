package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lock is one hold of a lock. It is safe for concurrent use.
//
// It is held until Release, or until its context ends with a LostError: that happens when the lease was not renewed in
// time by this process's own clock, counted from before the request was sent and less a margin (a hundredth of the lease
// and 2 ms), so before any other client can be given the lock, even while the server cannot be reached; or when the
// server says that the lock is another's; or by a break, MaxHold or MaxRenewals. What is not promised: that a process
// that was paused notices before its next instruction. For that there is Fence: give it to the resource with every write,
// and let the resource refuse a lower one than it has seen.
type Lock struct {
	held   *held
	hold   string      // id of this hold; "" is the unnamed one of the first acquisition
	inner  heldContext // the parent of ctx
	ctx    context.Context
	cancel context.CancelCauseFunc

	released bool // guarded by held.mu
}

// Context is the caller's context of the acquisition, ended also when the lock is lost or released; context.Cause says
// which: a *LostError, ErrReleased, ErrClosed, or the caller's own cause. Do the work under it. It carries the owner:
// an Acquire of the same name by this client under it re-enters the lock instead of waiting for it. Goroutines that are
// started with it therefore share the lock and are not excluded from each other.
func (l *Lock) Context() context.Context { return l.ctx }

// Name is the lock's name, without the key's prefix.
func (l *Lock) Name() string { return l.held.name }

// Owner is the string that the server knows the holder by; see WithOwner.
func (l *Lock) Owner() string { return l.held.owner }

// Fence is the fencing token: it is higher than that of every earlier holder of this lock, within the bounds that
// functions/README.md states. Re-entering does not change it.
func (l *Lock) Fence() int64 { return l.held.fence }

// Remaining is how long this process may still count on the lock if it is not renewed; 0 when it is lost or released.
func (l *Lock) Remaining() time.Duration {
	l.held.mu.Lock()
	released := l.released
	l.held.mu.Unlock()
	if released {
		return 0
	}
	return l.held.remaining()
}

// Renew starts the lease anew and blocks until the server confirmed it, or, when the lock turns out to be lost, for up to
// 250 ms more in which the reason of a break may arrive. It is needed only without automatic renewal.
//
// Errors: *LostError if the lock is lost (the context has ended then), ErrNotHeld after Release, ErrUnreachable when the
// server did not answer: the lock is then held for as long as Remaining says.
func (l *Lock) Renew(ctx context.Context) error {
	h := l.held
	if err := h.check(l); err != nil {
		return opError("renew", h.name, err)
	}
	sent := time.Now()
	r, err := h.client.renew(ctx, h.key, h.owner, h.set.ttl)
	if err != nil {
		return opError("renew", h.name, err)
	}
	if !r.yes {
		return opError("renew", h.name, h.gone(ctx))
	}
	h.extend(sent)
	return nil
}

// Release gives this hold back; the last one frees the lock, or hands it to the next in line. It ends the lock's context
// at once, with ErrReleased. It goes on when ctx is cancelled, and blocks for one round trip, or, while the server
// cannot be reached, until the lease has ended; then the lock is free as well. (With a ConnWriteTimeout of rueidis that is
// longer than a lease of 25 s or more, until that is over.)
//
// Errors: ErrNotHeld when it was released before, *LostError when the lock was lost before: what was done since may have
// run beside another holder. ErrUnreachable when the server could not be asked until the lease ended.
func (l *Lock) Release(ctx context.Context) error {
	h := l.held
	lost := h.check(l)
	deadline, found, tell := h.drop(l)
	l.cancel(ErrReleased)
	switch {
	case lost != nil && !(tell && capped(lost) && time.Now().Before(deadline)):
		return opError("release", h.name, lost)
	case !found: // another Release was faster
		return opError("release", h.name, ErrNotHeld)
	case !tell: // passed on within this process
		return nil
	}
	if err := h.client.giveBack(ctx, h, l.hold, deadline); err != nil || lost == nil {
		return err
	}
	return opError("release", h.name, lost)
}

// patientLease is longer than rueidis waits for an answer, by default (10 s, and as long to notice).
const patientLease = 25 * time.Second

// giveBack releases a hold on the server, asking again until it answers or the lease is over. The owner string makes the
// repeats safe: 'not yours' after a request whose reply was lost means that it had been done.
func (c *Client) giveBack(ctx context.Context, h *held, hold string, deadline time.Time) error {
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	if time.Until(deadline) < patientLease { // else rueidis gives up by itself before the lease does, and this need not set a timer
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	for pause, asked := 5*time.Millisecond, false; ; pause = min(2*pause, time.Second) {
		r, err := c.releaseRun(ctx, h, hold)
		switch {
		case err == nil && (r.yes || asked):
			return nil
		case err == nil:
			return opError("release", h.name, h.lose(ErrTaken, ""))
		case ctx.Err() != nil && !errors.Is(err, ErrUnreachable): // only the lease ends ctx
			return opError("release", h.name, fmt.Errorf("%w until the lease ended: %w", ErrUnreachable, err))
		case !errors.Is(err, ErrUnreachable):
			return opError("release", h.name, err)
		}
		asked = true
		if !time.Now().Before(deadline) || !pauseFor(ctx, min(pause, time.Until(deadline))) {
			return opError("release", h.name, err)
		}
	}
}

// pauseFor waits for d, or returns false when ctx ends first.
func pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
