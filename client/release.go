package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// moment is what a call may take whose context is over before it begins, or after it ended.
const moment = 250 * time.Millisecond

// patientLease is longer than rueidis waits for an answer, by default (10 s, and as long to
// notice): it needs no timer.
const patientLease = 25 * time.Second

// Release gives this hold back. The last one frees the lock, or hands it to the next in line. It
// ends the lock's context at once, with ErrReleased, and before anybody else can have the lock. It
// blocks for one round trip, and while the server cannot be reached until ctx ends or the lease has
// ended. The giving back goes on in the background when ctx ends; a context that is over already
// still releases, and waits for the answer for at most 250 ms. A lock that was lost is released too:
// another server may have it still, and keeps others out until then, or until the lease is over.
//
// Errors: ErrNotHeld when it was released before; *LostError when the lock was lost before: what
// was done since may have run beside another holder; ErrUnreachable when the server did not answer
// in time, and ErrClosed when the client was closed meanwhile: the lease ends the lock at the
// latest.
func (l *Lock) Release(ctx context.Context) error {
	return l.release(ctx, l.tenure.held.terms.minHold)
}

// refuse is Release of a lock that nobody worked under: there is nothing that MinHold could keep
// from others. One that was re-entered is somebody else's too.
func (l *Lock) refuse(ctx context.Context) {
	if l.joined {
		_ = l.Release(ctx)
	} else {
		_ = l.release(ctx, 0)
	}
}

func (l *Lock) release(ctx context.Context, minHold time.Duration) error {
	t, now := l.tenure, time.Now()
	h := t.held
	_ = t.look(now)
	released, last, cause := t.drop(&l.hold)
	if released {
		return opError("release", h.name, ErrNotHeld)
	}
	l.hold.cancel(ErrReleased)
	if !last {
		return opError("release", h.name, cause)
	}
	if cause == nil {
		passed, err := h.handOver(ctx, t, now, minHold)
		if h.observer != nil {
			h.tellRelease(t, now, passed, err)
		}
		return err
	}
	if limited(cause) {
		if err := h.giveBack(ctx, t); err != nil && !errors.Is(err, ErrLost) {
			h.journal.unreleased(h.name, err)
		}
	}
	h.keepalive.update(&h.entry) // another server may have it still
	return opError("release", h.name, cause)
}

// tellRelease tells the Observer of a release, unless it was told of a loss meanwhile.
func (h *held) tellRelease(t *tenure, now time.Time, passed bool, err error) {
	if !t.hide() || h.observer.Released == nil {
		return
	}
	told := t.told(now, err)
	told.Passed = passed
	h.observer.Released(*told)
}

// handOver passes the lock on in this process, or gives it back, when it was held for minHold. t has
// no holds any more.
func (h *held) handOver(ctx context.Context, t *tenure, now time.Time, minHold time.Duration) (passed bool, err error) {
	if early := minHold - now.Sub(t.began); early > 0 {
		return false, h.linger(ctx, t, now, early)
	}
	if h.line != nil && h.passOn(t, now) {
		return true, nil
	}
	return false, h.giveBack(ctx, t)
}

// linger leaves the lock with the server for so long, held by nobody, and gives it back then. If
// this process ends before that, so does the lease, when it is over.
func (h *held) linger(ctx context.Context, t *tenure, now time.Time, left time.Duration) error {
	length, channel, ok, cause := h.stay(t, now, now.Add(left))
	if !ok {
		return opError("release", h.name, cause)
	}
	h.keepalive.update(&h.entry)
	h.leaveLine() // those of this process wait at the server like all others
	ctx, cancel := within(ctx)
	defer cancel()
	r, err := h.calls.Renew(ctx, h.terms.copies, h.key, h.renews(fcall.TTL(length), channel))
	switch {
	case err != nil:
		err = opError("release", h.name, h.core.ended(ctx, err))
	case !r.Yes || r.Fence != h.first:
		return opError("release", h.name, h.refused(ErrTaken, ""))
	}
	h.stays(now, err == nil)
	h.keepalive.update(&h.entry)
	return err
}

// within is the context of a call that gives back. One that is over already still sends it.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	if over(ctx) {
		return context.WithTimeout(context.WithoutCancel(ctx), moment)
	}
	return ctx, func() {}
}

func (h *held) lostTo(why error) error {
	return &LostError{Name: h.name, Owner: h.owner, Fence: h.first, Err: why}
}

// giveBack tells the server that nobody here wants the lock. Only one caller does, whichever ends
// its use.
func (h *held) giveBack(ctx context.Context, t *tenure) error {
	ok := h.giveUp()
	until, cause := t.why()
	if !ok { // it was lost this very moment
		return opError("release", h.name, cause)
	}
	first := h.withdraw()
	taken, err := h.tell(ctx, t, until)
	// Not before: who declines a message about the grant that comes late could overtake the release,
	// which would then be told that the lock is not ours.
	if first {
		h.depart()
	}
	h.gaveBack(taken, err)
	h.keepalive.update(&h.entry)
	return opError("release", h.name, err)
}

// tell releases the lock on the server. It asks again until there is an answer, ctx ends, or the
// lease is over. The owner string makes the repeats safe: 'not yours' after a request whose outcome
// is unknown means that it was done, or that another server has to be told too.
func (h *held) tell(ctx context.Context, t *tenure, until time.Time) (taken bool, err error) {
	ctx, cancel := within(ctx)
	defer cancel()
	if time.Until(until) < patientLease {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, until)
		defer cancel()
	}
	last := int64(0)
	if h.top > h.first {
		last = t.fence
	}
	for pause, unknown := 5*time.Millisecond, false; ; pause = min(2*pause, time.Second) {
		r, err := h.calls.Release(ctx, h.key, h.owner, h.hold, last)
		switch {
		case err == nil && (r.Yes || unknown):
			return r.Yes, nil
		case err == nil:
			return false, h.reason(t)
		case h.closing.Err() != nil:
			return false, ErrClosed
		case ctx.Err() != nil:
			return false, fmt.Errorf("%w: no answer in time", ErrUnreachable)
		case !errors.Is(err, ErrUnreachable):
			return false, err
		}
		unknown = unknown || fcall.Unknown(err)
		left := time.Until(until)
		if left <= 0 {
			return false, err
		}
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return false, err
		case <-h.closing.Done():
			return false, ErrClosed
		}
	}
}

// reason returns why the server has the lock as another's.
func (h *held) reason(t *tenure) error {
	if _, cause := t.why(); cause != nil {
		return cause
	}
	return h.lostTo(ErrTaken)
}

// ReleaseOwner gives a lock back for the owner of that string, all of its holds, whichever process
// took them: for work that one process begins and another one ends. The contexts of this client's
// Locks of that owner have ended when it returns. Those of other clients end when they notice: at
// once if they have held the lock for about a second and the server tells them of changes, else by
// then, or at their next renewal; until then two holders are possible. MinHold does not hold it up.
// It blocks for one round trip.
//
// Errors: ErrNotHeld when that owner does not have the lock; the rest as TryAcquire, ErrBusy
// excepted.
func (c *Client) ReleaseOwner(ctx context.Context, name, owner string) error {
	key, err := c.question(ctx, name)
	if err == nil && owner == "" {
		err = fmt.Errorf("%w: Owner must not be empty", ErrArgument)
	}
	if err != nil {
		return opError("release", name, err)
	}
	ours := c.keepalive.pick(func(t timed) bool {
		h, ok := t.(*held)
		return ok && h.ours() && h.key == key && h.owner == owner
	})
	r, err := c.calls.Release(ctx, key, owner, allHolds, 0)
	if err == nil && !r.Yes {
		err = ErrNotHeld
	}
	if err == nil {
		for _, t := range ours {
			_ = t.(*held).refused(ErrTaken, "")
		}
	}
	return opError("release", name, c.ended(ctx, err))
}

// allHolds is the id that means every hold of an owner.
const allHolds = "*"
