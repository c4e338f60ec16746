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
	"github.com/holdfast-go/holdfast/client/internal/queue"
	"github.com/holdfast-go/holdfast/client/internal/tracking"
	"github.com/holdfast-go/holdfast/functions"
)

// Acquire takes the lock, waiting for it in line until ctx ends or MaxWait is over. A release hands
// the lock to the first in line; when a holder dies, the first in line takes it at the lease's end.
// Where the server permits no subscription it asks again and again. Goroutines of one process stand
// behind one another here, and one place in the server's line is theirs. Under the context of a Lock
// of the same name it re-enters that lock, in memory, instead of waiting for it. The settings are those of
// that lock: MinHold, MaxHold and leases that are given here have no effect.
//
// ctx is the lock's context too: when it ends, so does the work, and a lock that is not released then
// is given back Grace after its next renewal. To return a lock from a function that cancels its context, use
// WithLockContext.
//
// Errors: *WaitError when the wait ended without the lock, which says why: ErrTimeout, ErrBusy,
// ErrUnreachable, ErrClosed or context.Canceled; the rest as TryAcquire. If the server is
// unreachable from the start, Acquire fails with ErrUnreachable, after one retry if only the reply
// was lost. Once it is waiting, it rides out outages of up to one lease. After an error the lock is
// neither held nor waited for.
func (c *Client) Acquire(ctx context.Context, name string, opts ...Option) (*Lock, error) {
	return c.observed(ctx, name, true, opts)
}

// observed is Acquire if wait, else TryAcquire, and tells the Observer of it.
func (c *Client) observed(ctx context.Context, name string, wait bool, opts []Option) (*Lock, error) {
	o, since := c.events.observer, time.Time{}
	if o != nil {
		since = time.Now()
		if o.Asked != nil {
			o.Asked(ctx, Ask{name, wait})
		}
	}
	l, behind, err := c.acquire(ctx, name, wait, opts)
	switch {
	case o == nil:
	case l != nil:
		l.shown(ctx, o, wait, since, behind)
	case o.Refused != nil:
		o.Refused(ctx, Refusal{Name: name, Asked: since, Wait: wait, Err: err})
	}
	return l, err
}

// acquire is Acquire if wait, else TryAcquire. behind is for the Observer.
func (c *Client) acquire(ctx context.Context, name string, wait bool, opts []Option) (l *Lock, behind *BusyError, err error) {
	op := "try"
	if wait {
		op = "acquire"
	}
	w, err := c.want(ctx, name, opts)
	if err == nil && !c.inflight.enter() {
		err = context.Cause(c.leaving)
	}
	if err != nil {
		return nil, nil, opError(op, name, err)
	}
	defer c.inflight.leave()
	t, _ := ctx.Value(holderKey{c, w.Key}).(*holding.Holder)
	if t != nil && !w.set.alone && (w.Owner == "" || w.Owner == t.Owner) {
		l, err = w.reenter(ctx, t)
		return l, nil, opError("re-enter", name, err)
	}
	if err = w.begun(ctx); err != nil {
		return nil, nil, opError(op, name, err)
	}
	if wait {
		return w.wait(ctx)
	}
	l, busy, err := w.try(ctx)
	switch {
	case err != nil:
		err = opError(op, name, c.ended(ctx, err))
	case busy != nil:
		err = busy
	}
	return l, nil, err
}

// wait waits in line, or tries as often as it may.
func (w *want) wait(ctx context.Context) (*Lock, *BusyError, error) {
	ctx, cancel := w.set.within(ctx)
	defer cancel()
	if p := w.set.parent; p != nil && p.Done() != nil { // whoever gets the lock after its end has none
		var end context.CancelCauseFunc
		ctx, end = context.WithCancelCause(ctx)
		defer end(nil)
		defer context.AfterFunc(p, func() { end(errParent) })()
	}
	began := time.Now()
	if w.set.tries > 0 {
		return w.poll(ctx, began)
	}
	l, waited, err := w.ask(ctx, w.Request)
	last := w.busy(waited.Last)
	if err != nil {
		err = w.stopped(ctx, began, waited.Position, last, err)
	}
	return l, last, err
}

// TryAcquire takes the lock if it is free, and fails at once if not. One command; it never
// overtakes a waiter. Under the context of a Lock of the same name it re-enters that lock, in
// memory.
//
// A lock that is known to be held is refused from memory, without a command: see WithFreshAnswer.
//
// Errors: *BusyError (ErrBusy) with who has it; ErrUnreachable, ErrInvalid, ErrClosed; ErrLost when the lock
// to re-enter is lost, ErrNotHeld when it is released and ctx goes on; context.Canceled; ErrTimeout when the
// context's deadline had passed before the call. After an error the lock is not held: if the outcome was
// unknown, a clean-up goes on in the background.
func (c *Client) TryAcquire(ctx context.Context, name string, opts ...Option) (*Lock, error) {
	return c.observed(ctx, name, false, opts)
}

// want is what one call wants.
type want struct {
	queue.Request
	client *Client
	set    *settings       // the client's own, or a copy that options changed; never written after
	parent context.Context // of the lock's context
}

func (c *Client) want(ctx context.Context, name string, opts []Option) (want, error) {
	w := want{client: c, set: c.settings}
	key, err := c.key(name)
	if err != nil {
		return w, err
	}
	if len(opts) > 0 {
		set := *c.settings
		WithOptions(opts...)(&set)
		if err := set.complete(); err != nil {
			return w, err
		}
		if set.owner != "" && set.Label != c.settings.Label {
			return w, fmt.Errorf("%w: WithLabel has no effect beside WithOwner, whose string is all that others see", ErrArgument)
		}
		w.set = &set
	}
	w.parent = cmp.Or(w.set.parent, ctx)
	w.Request = queue.Request{Name: name, Key: key, Terms: w.set.terms, Owner: w.set.owner, GiveUpEarly: w.set.GiveUpEarly}
	return w, nil
}

// begun is the error of a call whose contexts had ended before it began.
func (w *want) begun(ctx context.Context) error {
	if err := begun(ctx); err != nil || w.set.parent == nil {
		return err
	}
	return begun(w.set.parent)
}

// try asks once.
func (w *want) try(ctx context.Context) (*Lock, *BusyError, error) {
	c, r := w.client, w.Request
	var question *tracking.Question
	r.Try, r.Fresh = true, w.set.fresh
	if r.Owner == "" && !w.set.fresh && r.Terms.Replicas == 0 && r.Terms.Crowd == 0 && c.cache.On() {
		value, age, q := c.cache.Answer(w.Key, tracking.Refusal)
		if value != nil {
			busy := *value.(*BusyError)
			busy.Remaining -= age
			return nil, &busy, nil
		}
		question, r.Tracked = q, q != nil
	}
	sent := time.Now()
	l, waited, err := w.ask(ctx, r)
	busy := w.busy(waited.Last)
	switch {
	case err == nil:
		return l, nil, nil
	case busy == nil && err == ErrBusy: // it is being handed over in this process
		busy = w.busy(&fcall.Reply{Why: functions.WhyServing})
	case !errors.Is(err, ErrBusy) || busy == nil:
		return nil, nil, err
	}
	// The first time that it is busy, and the next time until when. Who did not ask is not told of a change.
	if r.Tracked && waited.Asked && busy.Why != functions.WhySettling {
		kept := *busy // the other one is the caller's
		c.cache.Keep(question, tracking.Refusal, &kept, sent, busy.Remaining)
	} else if waited.Asked {
		c.cache.Notice(w.Key)
	}
	return nil, busy, nil
}

// poll is Acquire for those who asked for tries instead of a place in line.
func (w *want) poll(ctx context.Context, began time.Time) (*Lock, *BusyError, error) {
	w.set.fresh = true // they are of this call: an option asked for the tries
	var last *BusyError
	for try := 1; ; try++ {
		l, busy, err := w.try(ctx)
		if last = cmp.Or(busy, last); l != nil {
			return l, last, nil
		}
		switch {
		case err != nil && !errors.Is(err, ErrBusy):
		case try >= w.set.tries:
			err = fmt.Errorf("%w: %d tries", cmp.Or(err, ErrBusy), try)
		default:
			select {
			case <-time.After(w.set.interval):
				continue
			case <-ctx.Done():
				err = ctx.Err()
			case <-w.client.leaving.Done(): // stopped says so
			}
		}
		return nil, nil, w.stopped(ctx, began, 0, last, err)
	}
}

// ask asks the queue of the key, again if what it got was lost on the way. What the owner of the caller's
// choice got is confirmed if a ReleaseOwner of this client crossed it, which may have given it back.
func (w *want) ask(ctx context.Context, r queue.Request) (*Lock, queue.Waited, error) {
	for c := w.client; ; {
		crossed := c.released.Load()
		t, waited, err := c.queues.Acquire(ctx, r)
		if err != nil {
			return nil, waited, err
		}
		if err = begun(w.parent); err == nil && r.Owner != "" && c.released.Load() != crossed {
			err = c.confirm(ctx, t.Holding)
		}
		var l *Lock
		if err == nil {
			l, err = newLock(c, t, w.parent, false)
		}
		if l == nil {
			c.queues.Decline(t)
		}
		if !errors.Is(err, ErrLost) {
			return l, waited, err
		}
	}
}

// reenter adds a Lock to a holder's, in memory: its settings are those of the first. It fails if the
// holder's time is over.
func (w *want) reenter(ctx context.Context, t *holding.Holder) (*Lock, error) {
	has, wants := t.Terms, w.set.terms
	if has.Crowd != 0 && cmp.Compare(has.Crowd, 0) != cmp.Compare(wants.Crowd, 0) {
		return nil, fmt.Errorf("%w: the lock to re-enter is limited or shared, so release it first: two that both asked under it for "+
			"what others keep out would wait for each other", ErrArgument)
	}
	if wants.Replicas > has.Replicas {
		return nil, fmt.Errorf("%w: the lock to re-enter was taken with Replicas %d, not %d", ErrArgument, has.Replicas, wants.Replicas)
	}
	if wants.Guard > has.Guard {
		return nil, fmt.Errorf("%w: the lock to re-enter was taken with less Guard, or none", ErrArgument)
	}
	if err := cmp.Or(w.client.keeper.Check(t, time.Now()), t.Cause(), w.begun(ctx)); err != nil {
		return nil, err
	}
	return newLock(w.client, t, w.parent, true)
}
