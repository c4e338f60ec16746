package client

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/tracking"
)

// TryAcquire takes the lock if it is free, and fails at once if not. One command; it never
// overtakes a waiter. Under the context of a Lock of the same name it re-enters that lock, in
// memory.
//
// A lock that is known to be held is refused from memory, without a command: see WithFreshAnswer.
//
// Errors: *BusyError (ErrBusy) with who has it; ErrUnreachable, ErrInvalid, ErrClosed; ErrLost or
// ErrNotHeld when the lock to re-enter is over; context.Canceled; ErrTimeout when the context's
// deadline had passed before the call. After an error the lock is not held: if the outcome was
// unknown, a clean-up goes on in the background.
func (c *Client) TryAcquire(ctx context.Context, name string, opts ...Option) (*Lock, error) {
	since := c.observer.asked(ctx, Ask{name, false})
	l, err := c.tryAcquire(ctx, name, opts)
	c.answer(ctx, Ask{name, false}, since, l, nil, err)
	return l, err
}

func (c *Client) tryAcquire(ctx context.Context, name string, opts []Option) (*Lock, error) {
	a, err := c.attempt(name, opts)
	if err != nil {
		return nil, opError("try", name, err)
	}
	if c.gate.closed() {
		return nil, opError("try", name, ErrClosed)
	}
	if t := a.outer(ctx); t != nil {
		l, err := t.reenter(a.parent(ctx), &a.set.terms)
		return l, opError("re-enter", name, err)
	}
	if err := begun(ctx); err != nil {
		return nil, opError("try", name, err)
	}
	if a.hold == "" && !a.set.fresh && a.set.terms.copies.Replicas == 0 {
		value, age, question := c.cache.Answer(a.key, tracking.Refusal)
		if value != nil {
			busy := *value.(*BusyError)
			busy.Remaining -= age
			return nil, &busy
		}
		a.question = question
	}
	if !c.gate.enter() {
		return nil, opError("try", name, ErrClosed)
	}
	defer c.gate.leave()
	a.identify()
	l, busy, err := a.try(ctx, a.parent(ctx))
	switch {
	case err != nil:
		return nil, opError("try", name, c.ended(ctx, err))
	case l == nil:
		return nil, busy
	}
	return l, nil
}

// Acquire takes the lock, waiting for it in line until ctx ends or MaxWait is over. Waiting costs
// no polling: a release hands the lock to the first in line; when a holder dies, the first in line
// takes it at the lease's end. Where the server permits no subscription it asks again every
// Interval. Under the context of a Lock of the same name it re-enters that lock, in memory, instead
// of waiting for it.
//
// Errors: *WaitError when the wait ended without the lock, which says why: ErrTimeout, ErrBusy,
// ErrUnreachable, ErrClosed or context.Canceled; the rest as TryAcquire. If the server is
// unreachable from the start, Acquire fails with ErrUnreachable, after one retry if only the reply
// was lost. Once it is waiting, it rides out outages of up to one lease. After an error the lock is
// neither held nor waited for.
func (c *Client) Acquire(ctx context.Context, name string, opts ...Option) (*Lock, error) {
	since := c.observer.asked(ctx, Ask{name, true})
	a, err := c.attempt(name, opts)
	if err != nil {
		err = opError("acquire", name, err)
		c.answer(ctx, Ask{name, true}, since, nil, nil, err)
		return nil, err
	}
	l, err := a.acquire(ctx)
	c.answer(ctx, Ask{name, true}, since, l, a.behind, err)
	return l, err
}

func (a *attempt) acquire(ctx context.Context) (*Lock, error) {
	c, name := a.client, a.name
	if !c.gate.enter() {
		return nil, opError("acquire", name, ErrClosed)
	}
	defer c.gate.leave()
	if t := a.outer(ctx); t != nil {
		l, err := t.reenter(a.parent(ctx), &a.set.terms)
		return l, opError("re-enter", name, err)
	}
	if err := begun(ctx); err != nil {
		return nil, opError("acquire", name, err)
	}
	a.began, a.until = time.Now(), ctx
	if a.set.maxWait > 0 {
		var cancel context.CancelFunc
		a.until, cancel = context.WithTimeoutCause(ctx, a.set.maxWait, errMaxWait)
		defer cancel()
	}
	switch {
	case a.set.tries > 0:
		return a.poll(ctx)
	case a.hold != "": // a place in the server's line of its own
		return a.wait(ctx, "")
	}
	return a.share(ctx)
}

// poll is Acquire for those who asked for tries instead of a place in line.
func (a *attempt) poll(ctx context.Context) (*Lock, error) {
	a.identify()
	w := &wait{attempt: a}
	for try := 1; ; try++ {
		w.asks()
		l, busy, err := a.try(a.until, a.parent(ctx))
		if err != nil {
			return nil, w.failed(err)
		}
		if l != nil {
			return l, nil
		}
		w.answered(busy)
		if try >= a.set.tries {
			return nil, w.error(fmt.Errorf("%w: %d tries", ErrBusy, try))
		}
		if err := w.sleep(a.set.interval); err != nil {
			return nil, err
		}
	}
}

// answer tells the Observer what a call returns.
func (c *Client) answer(ctx context.Context, ask Ask, since time.Time, l *Lock, behind *BusyError, err error) {
	switch {
	case c.observer == nil:
	case l == nil:
		c.observer.refused(ctx, Refusal{Name: ask.Name, Asked: since, Wait: ask.Wait, Err: err})
	default:
		l.shown(ctx, c.observer, ask, since, behind)
	}
}
