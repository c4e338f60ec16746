package client

import (
	"context"
	"fmt"
	"time"
)

// TryAcquire takes the lock if it is free, and fails at once if not. One command; it never overtakes a waiter. Under the
// context of a Lock of the same name it re-enters that lock.
//
// Errors: *BusyError (ErrBusy) with who has it; ErrUnreachable, ErrLibrary, ErrDenied, ErrNotALock, ErrArgument; the
// context's error. After an error the lock is not held: if the outcome was unknown, a clean-up goes on in the background.
func (c *Client) TryAcquire(ctx context.Context, name string, opts ...Option) (*Lock, error) {
	a, err := c.attempt(name, opts)
	if err != nil {
		return nil, opError("try", name, err)
	}
	if h := a.outer(ctx); h != nil {
		return a.reenter(ctx, h)
	}
	if a.hold == "" {
		busy, question := c.cache.busy(a.key)
		if busy != nil && ctx.Err() == nil {
			return nil, busy
		}
		a.question = question
	}
	a.identify()
	l, busy, err := a.try(ctx, ctx)
	switch {
	case err != nil:
		return nil, opError("try", name, err)
	case l == nil:
		return nil, busy
	}
	return l, nil
}

// Acquire takes the lock, waiting for it in line until ctx ends or MaxWait is over. Waiting costs no polling: whoever
// releases the lock hands it to the first in line; when a holder dies, the first in line takes it at the lease's end.
// Where the server permits no subscription it asks again every Interval. Under the context of a Lock of the same name it
// re-enters that lock instead of waiting for it.
//
// Errors: *WaitError when the wait ended without the lock (ErrTimeout, or the context's error); the rest as TryAcquire.
// A server that cannot be reached is ErrUnreachable at once, after one more call if the answer to the first in line was
// lost; one that is lost once it has said that the lock is busy, when it could not be reached for a whole lease. After an
// error the lock is neither held nor waited for.
func (c *Client) Acquire(ctx context.Context, name string, opts ...Option) (*Lock, error) {
	a, err := c.attempt(name, opts)
	if err != nil {
		return nil, opError("acquire", name, err)
	}
	if h := a.outer(ctx); h != nil {
		return a.reenter(ctx, h)
	}
	a.started = time.Now()
	until := ctx
	if a.set.maxWait > 0 {
		var cancel context.CancelFunc
		until, cancel = context.WithTimeoutCause(ctx, a.set.maxWait, ErrTimeout)
		defer cancel()
	}
	if a.set.tries > 0 {
		a.identify()
		return a.poll(ctx, until)
	}
	if a.hold != "" || a.set.giveUpEarly { // a place in Redis's line of its own
		a.identify()
		return a.wait(ctx, until)
	}
	return a.share(ctx, until)
}

// share is Acquire together with the others of this process: one of them leads, the lock is passed on among them.
func (a *attempt) share(ctx, until context.Context) (*Lock, error) {
	for {
		room, ticket := a.client.rooms.enter(a)
		a.room = room
		if ticket == nil {
			a.identify()
			return a.wait(ctx, until)
		}
		turn, err := room.await(ticket, until)
		if err != nil {
			w := &wait{attempt: a}
			if h, waiters := room.snapshot(); h != nil {
				w.last = &BusyError{Name: a.name, Holder: parseHolder(h.owner, h.fence), Remaining: h.remaining(), Waiters: waiters}
			}
			return nil, w.failed(until, err)
		}
		if turn.held == nil {
			if a.owner = turn.owner; a.owner == "" {
				a.identify()
			}
			return a.wait(ctx, until)
		}
		if l, lost := turn.held.lock(ctx, ""); lost == nil {
			return l, nil
		} // lost on the way: stand in line again
	}
}

// poll is Acquire for those who asked for tries instead of a place in line.
func (a *attempt) poll(ctx, until context.Context) (*Lock, error) {
	w := &wait{attempt: a}
	for try := 1; ; try++ {
		l, busy, err := a.try(ctx, until)
		if err != nil {
			return nil, w.failed(until, err)
		}
		if l != nil {
			return l, nil
		}
		w.last = busy
		if try >= a.set.tries {
			return nil, w.error(fmt.Errorf("%w: %d tries", ErrTimeout, try))
		}
		if err := w.sleep(until, a.set.interval); err != nil {
			return nil, err
		}
	}
}
