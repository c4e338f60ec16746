// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// Lock is one hold of a lock. It is safe for concurrent use.
//
// It is held until Release, or until its context ends with a LostError. That happens when the lease
// was not renewed in time by this process's own clock, which is counted from before the request was
// sent and less a margin (a hundredth of the lease and 2 ms), so before the lease can end on the
// server; or when the server says that the lock is another's; or by a break, MaxHold or
// MaxRenewals. Not promised: that a process that was paused notices before its next instruction.
// For that there is Fence: give it to the resource with every write, and let the resource refuse a
// lower one than it has seen. For SQL, package fence does that.
//
// A Lock that is dropped without Release is renewed until the context that it was acquired with ends,
// or the Client closes: use Do, or MaxHold.
type Lock struct {
	client *Client
	holder *holding.Holder
	ref    holding.Ref
	ctx    lockContext
	joined bool // by re-entry
}

// lockContext is a lock's context. It carries the lock, and looks at the clock when it is asked.
type lockContext struct {
	context.Context // ends with the lock
	lock            *Lock
	under           *lockContext // the parent, if that is another lock's; else nil
}

// holderKey finds the holder in a context, by client and key: what makes re-entry possible. The zero
// key finds the innermost.
type holderKey struct {
	client *Client
	key    string
}

// Value returns the *holding.Holder for its holderKey, and adds it to a *holding.Under.
func (c *lockContext) Value(key any) any {
	if all, ok := key.(*holding.Under); ok {
		*all = append(*all, c.lock.holder)
	}
	if k, ok := key.(holderKey); ok {
		if l := c.lock; (k == holderKey{} || k.client == l.client && k.key == l.holder.Key) {
			return l.holder
		}
	}
	return c.Context.Value(key)
}

// Err looks at the clock too: after a pause of the process the lease can be over before the
// scheduler has run.
func (c *lockContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if cause := c.lock.client.keeper.Check(c.lock.holder, time.Now()); cause != nil {
		c.lock.ref.Cancel(cause) // it is being cancelled: who asks next for the cause has it
		return context.Canceled
	}
	if c.under != nil {
		return c.under.Err()
	}
	return nil
}

// Fence returns the fencing token of the lock that ctx was given by, in Do, Value, Wrap or
// Lock.Context: the innermost if there are several. It is 0 if ctx is under no lock.
func Fence(ctx context.Context) int64 { return innermost(ctx).Fence }

// Slot returns the slot of the lock that ctx was given by, as Fence does the token.
func Slot(ctx context.Context) int { return innermost(ctx).Slot }

// innermost is the holder of the innermost lock that ctx is under; one of nothing if there is none.
func innermost(ctx context.Context) *holding.Holder {
	if t, ok := ctx.Value(holderKey{}).(*holding.Holder); ok {
		return t
	}
	return &holding.Holder{Holding: &holding.Holding{}}
}

// newLock makes a Lock of a holder's. The first one is counted already; join counts another. It fails
// if the holder's time is over.
func newLock(c *Client, t *holding.Holder, parent context.Context, join bool) (*Lock, error) {
	l := &Lock{client: c, holder: t, joined: join}
	inner, cancel := context.WithCancelCause(parent)
	under, _ := parent.(*lockContext)
	l.ctx = lockContext{inner, l, under}
	l.ref.Context, l.ref.Cancel = inner, cancel
	if err := t.Add(&l.ref, join); err != nil {
		cancel(err)
		return nil, err
	}
	return l, nil
}

// shown tells the Observer of a Lock that is about to be returned, and takes over its context.
func (l *Lock) shown(call context.Context, o *Observer, wait bool, since time.Time, behind *BusyError) {
	t := l.holder
	if o.Acquired != nil {
		l.ctx.Context = o.Acquired(call, l.ctx.Context, Acquisition{Name: t.Name, Owner: t.Owner, Fence: t.Fence, Hold: t,
			Asked: since, Wait: wait, Passed: t.Fence != t.First, Reentered: l.joined, Behind: behind})
	}
	if l.joined {
		return
	}
	t.Shown.Store(true)
	if _, cause := t.Stands(); cause != nil && t.Shown.CompareAndSwap(true, false) && o.Lost != nil {
		o.Lost(*tenure(t, time.Now(), cause))
	}
}

// Context ends when the lock is lost or released, or when its parent does: the context of the call
// that acquired it, or that of WithLockContext. context.Cause says which: a *LostError,
// ErrReleased, or the parent's cause. Do the work under it. Its Err looks at the clock, so it is
// never nil once the lease is over here; contexts that are derived from it, and Done, follow when
// the scheduler of Go gets to it, which on a busy machine can be some milliseconds later.
//
// It carries the lock: an Acquire of the same name by this client under it re-enters the lock
// instead of waiting for it. Goroutines that are started with it therefore share the lock and are
// not excluded from each other.
func (l *Lock) Context() context.Context { return &l.ctx }

// Name is the lock's name, without the key's prefix.
func (l *Lock) Name() string { return l.holder.Name }

// Owner is the string that the server knows the holder by; see WithOwner.
func (l *Lock) Owner() string { return l.holder.Owner }

// Fence is the fencing token: it is higher than that of every earlier holder of this lock, within
// the bounds that functions/README.md states. Re-entering does not change it.
func (l *Lock) Fence() int64 { return l.holder.Fence }

// Slot is the number of a limited or shared lock, which no other holder has at the same time: the lowest that
// was free, from 1 on, so never above the n of its WithLimit. It is 0 for a lock that is had alone.
func (l *Lock) Slot() int { return l.holder.Slot }

// Remaining is how long this process may still count on the lock if it is not renewed; 0 when it is
// lost or released. MaxHold can end it earlier, and so can Grace, once the context of its call is over.
func (l *Lock) Remaining() time.Duration {
	now := time.Now()
	if l.state(now) != nil {
		return 0
	}
	until, _ := l.holder.Stands()
	return max(0, -lease.Since(now, until))
}

// state returns why l is not held at now: ErrNotHeld after its release, or the LostError.
func (l *Lock) state(now time.Time) error {
	cause := l.client.keeper.Check(l.holder, now)
	if l.ref.Released.Load() {
		return ErrNotHeld
	}
	return cause
}

// Renew starts the lease anew. It blocks until the server has answered or ctx ends, and first for a
// renewal that is under way. It is needed only without automatic renewal, which pauses until it returns: give
// ctx a deadline well below the lease. An answer that comes later does not count.
//
// Errors: *LostError if the lock is lost (the context has ended then), ErrNotHeld after Release,
// ErrUnreachable when the server did not answer: the lock is then held for as long as Remaining
// says; ErrTimeout or context.Canceled if ctx had ended before the call.
func (l *Lock) Renew(ctx context.Context) error { return l.RenewFor(ctx, 0) }

// RenewFor is Renew with another lease: d from now on, and after each later renewal; 0 keeps the one
// that it has. With less than is left this process counts on that little at once, also if the answer is
// lost; the server keeps the longer lease, which ends the lock only if the process dies.
//
// Errors: as Renew, and ErrArgument for a bad d.
func (l *Lock) RenewFor(ctx context.Context, d time.Duration) error {
	return opError("renew", l.Name(), l.renew(ctx, d))
}

func (l *Lock) renew(ctx context.Context, d time.Duration) error {
	c, h := l.client, l.holder.Holding
	if longest := cmp.Or(h.Terms.Guard, maxLease); d != 0 && (d < minLease || d > longest) {
		return fmt.Errorf("%w: the lease must be from %v to %v, not %v", ErrArgument, minLease, longest, d)
	}
	if err := cmp.Or(l.state(time.Now()), begun(ctx)); err != nil {
		return err
	}
	for {
		sent := time.Now()
		length, busy, ok := h.Extend(&l.ref, sent, d)
		switch {
		case busy != nil:
			select {
			case <-busy:
				continue
			case <-ctx.Done():
				return c.ended(ctx, ctx.Err())
			}
		case !ok:
			return cmp.Or(l.state(sent), newLostError(l.holder, ErrAbandoned, "")) // in its grace
		}
		c.keeper.Update(h)
		r, err := c.backend.Do(ctx, c.keeper.Tracked(h, length))
		err = c.ended(ctx, err)
		c.keeper.Renewed(h, sent, fcall.Outcome{Reply: r, Err: err})
		return cmp.Or(err, l.state(time.Now()))
	}
}

// Release gives this hold back. The last one frees the lock, or hands it to the next in line. It
// ends the lock's context at once, with ErrReleased, and before anybody else can have the lock. It
// blocks for one round trip, and while the server cannot be reached until ctx ends or the lease has
// ended. The release goes on in the background then. If ctx is over already, or is cancelled meanwhile,
// it waits for the answer for at most 250 ms more. A lock that was lost is released too, in the
// background: another server may have it still, and keeps others out until then, or until the lease is
// over.
//
// Errors: ErrNotHeld when it was released before; *LostError when the lock was lost before: what
// was done since may have run beside another holder; ErrUnreachable when the server did not answer
// in time, and ErrClosed when the client was closed meanwhile: the lease ends the lock at the
// latest; so does it after ErrInvalid (ErrLibrary, ErrDenied), and the release goes on until then.
func (l *Lock) Release(ctx context.Context) error {
	c, t, now := l.client, l.holder, time.Now()
	c.releases.calls.Add(1)
	defer c.releases.leave()
	if l.ref.Released.Swap(true) {
		return opError("release", t.Name, ErrNotHeld)
	}
	last, cause := c.keeper.Leave(t, &l.ref, now)
	l.ref.Cancel(cmp.Or(cause, ErrReleased))
	if !last {
		return opError("release", t.Name, cause)
	}
	if cause != nil {
		until, _ := t.Stands() // behind that, and after any other cause, it is not ours any more
		if !errors.Is(cause, ErrMaxHold) && !errors.Is(cause, ErrMaxRenewals) || lease.Past(now, until) {
			c.queues.GiveUp(t)
		} else if _, err := c.queues.Release(ctx, t, now); err != nil && !errors.Is(err, ErrLost) {
			c.events.unreleased(t.Name, err)
		}
		return opError("release", t.Name, cause)
	}
	passed, err := c.queues.Release(ctx, t, now)
	if err != nil && !isLost(err) {
		err = c.ended(ctx, err)
	}
	err = opError("release", t.Name, err)
	c.events.released(t, now, passed, err)
	return err
}

// decline gives back, in the background, a Lock that nobody worked under: no minimum is kept, but that of a
// lock that it re-entered.
func (l *Lock) decline() {
	c, now := l.client, time.Now()
	last, cause := c.keeper.Leave(l.holder, &l.ref, now)
	if l.ref.Cancel(cmp.Or(cause, ErrReleased)); !last {
		return
	}
	c.events.released(l.holder, now, false, nil)
	if l.joined {
		c.queues.GiveUp(l.holder)
	} else {
		c.queues.Withdraw(l.holder, cause)
	}
}
