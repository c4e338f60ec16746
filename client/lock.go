package client

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// Lock is one hold of a lock. It is safe for concurrent use.
//
// It is held until Release, or until its context ends with a LostError. That happens when the lease
// was not renewed in time by this process's own clock, which is counted from before the request was
// sent and less a margin (a hundredth of the lease and 2 ms), so before the lease can end on the
// server; or when the server says that the lock is another's; or by a break, MaxHold or
// MaxRenewals. Not promised: that a process that was paused notices before its next instruction.
// For that there is Fence: give it to the resource with every write, and let the resource refuse a
// lower one than it has seen.
//
// A Lock that is dropped without Release is renewed until the Client closes: use Do, or MaxHold.
type Lock struct {
	tenure *tenure
	hold   tenancy
	ctx    lockContext
	joined bool // by re-entry
}

// lockContext is a lock's context. It carries the lock, and looks at the clock when it is asked.
type lockContext struct {
	context.Context // ends with the lock
	tenure          *tenure
}

// tenureKey finds the tenure in a context, by client and key: what makes re-entry possible. The
// zero key finds the innermost.
type tenureKey struct {
	client *core
	key    string
}

// Value returns the *tenure for its tenureKey.
func (c *lockContext) Value(key any) any {
	if k, ok := key.(tenureKey); ok {
		if h := c.tenure.held; (k == tenureKey{} || k.client == h.core && k.key == h.key) {
			return c.tenure
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
	if c.tenure.look(time.Now()) != nil {
		return context.Canceled // the context is being cancelled
	}
	return nil
}

// Fence returns the fencing token of the lock that ctx was given by, in Do, Value, Wrap or
// Lock.Context: the innermost if there are several. It is 0 if ctx is under no lock.
func Fence(ctx context.Context) int64 {
	if t, ok := ctx.Value(tenureKey{}).(*tenure); ok {
		return t.fence
	}
	return 0
}

// lock makes a Lock of a tenure. The first one's holder is counted already; join counts another. It
// fails if the tenure is over.
func (t *tenure) lock(parent context.Context, join bool) (*Lock, error) {
	l := &Lock{tenure: t, joined: join}
	inner, cancel := context.WithCancelCause(parent)
	l.ctx, l.hold.cancel = lockContext{inner, t}, cancel
	if err := t.add(&l.hold, join); err != nil {
		cancel(err)
		return nil, err
	}
	return l, nil
}

// shown tells the Observer of a Lock that is about to be returned, and takes over its context.
func (l *Lock) shown(call context.Context, o *Observer, ask Ask, since time.Time, behind *BusyError) {
	t := l.tenure
	l.ctx.Context = o.acquired(call, l.ctx.Context, Acquisition{Name: t.held.name, Owner: t.held.owner, Fence: t.fence, Hold: t,
		Asked: since, Wait: ask.Wait, Passed: t.fence != t.held.first, Reentered: l.joined, Behind: behind})
	if l.joined {
		return
	}
	if cause := t.show(); cause != nil && o.Lost != nil {
		o.Lost(*t.told(time.Now(), cause))
	}
}

// reenter adds a Lock to a tenure, in memory: its settings are those of the first. It fails if the
// tenure is over.
func (t *tenure) reenter(parent context.Context, wanted *terms) (*Lock, error) {
	has := t.held.terms
	if wanted.copies.Replicas > has.copies.Replicas {
		return nil, fmt.Errorf("%w: the lock to re-enter was taken with Replicas %d, not %d", ErrArgument, has.copies.Replicas, wanted.copies.Replicas)
	}
	if wanted.guard != "" && (has.guard == "" || wanted.longest > has.longest) {
		return nil, fmt.Errorf("%w: the lock to re-enter was taken with less Guard, or none", ErrArgument)
	}
	if cause := t.look(time.Now()); cause != nil {
		return nil, cause
	}
	return t.lock(parent, true)
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
func (l *Lock) Name() string { return l.tenure.held.name }

// Owner is the string that the server knows the holder by; see WithOwner.
func (l *Lock) Owner() string { return l.tenure.held.owner }

// Fence is the fencing token: it is higher than that of every earlier holder of this lock, within
// the bounds that functions/README.md states. Re-entering does not change it.
func (l *Lock) Fence() int64 { return l.tenure.fence }

// Remaining is how long this process may still count on the lock if it is not renewed; 0 when it is
// lost or released.
func (l *Lock) Remaining() time.Duration {
	now := time.Now()
	if l.state(now) != nil {
		return 0
	}
	until, _ := l.tenure.why()
	return max(0, until.Sub(now))
}

// state returns why l is not held at now: ErrNotHeld after its release, or the LostError.
func (l *Lock) state(now time.Time) error {
	cause := l.tenure.look(now)
	if l.tenure.dropped(&l.hold) {
		return ErrNotHeld
	}
	return cause
}

// Renew starts the lease anew. It blocks until the server has answered or ctx ends; when the lock
// turns out to be lost, for up to 250 ms more in which the reason of a break may arrive. It is
// needed only without automatic renewal.
//
// Errors: *LostError if the lock is lost (the context has ended then), ErrNotHeld after Release,
// ErrUnreachable when the server did not answer: the lock is then held for as long as Remaining
// says.
func (l *Lock) Renew(ctx context.Context) error { return l.RenewFor(ctx, 0) }

// RenewFor is Renew with another lease: d from now on, and after each later renewal. A shorter
// lease is one at once, also if the answer is lost. Where several hold the lock by one owner string
// (WithOwner), the server's lease never ends earlier than any of them was told: a shorter one is then
// kept by this process alone.
//
// Errors: as Renew, and ErrArgument for a bad d.
func (l *Lock) RenewFor(ctx context.Context, d time.Duration) error {
	h := l.tenure.held
	if d != 0 && (d < minLease || d > h.terms.longest) {
		return opError("renew", h.name, fmt.Errorf("%w: the lease must be from %v to %v, not %v", ErrArgument, minLease, h.terms.longest, d))
	}
	sent := time.Now()
	if err := l.state(sent); err != nil {
		return opError("renew", h.name, err)
	}
	if err := begun(ctx); err != nil {
		return opError("renew", h.name, err)
	}
	length, channel, ok := h.extend(sent, d)
	if !ok {
		return opError("renew", h.name, l.lost())
	}
	h.keepalive.update(&h.entry)
	r, err := h.calls.Renew(ctx, h.terms.copies, h.key, h.renews(fcall.TTL(length), channel))
	ours := h.extended(sent, length, err == nil, r.Yes && r.Fence == h.first)
	h.tellRenewal(sent, err, ours)
	h.keepalive.update(&h.entry)
	switch {
	case err != nil:
		return opError("renew", h.name, h.core.ended(ctx, err))
	case !ours:
		h.inbox.CatchUp(ctx, []uint16{h.slot()})
		return opError("renew", h.name, h.refused(ErrTaken, ""))
	}
	return opError("renew", h.name, l.state(time.Now()))
}

// lost returns why the lock, which cannot be worked under any more, ended.
func (l *Lock) lost() error {
	if _, cause := l.tenure.why(); cause != nil {
		return cause
	}
	return ErrNotHeld
}
