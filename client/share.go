package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// share is Acquire together with the others of this process.
func (a *attempt) share(ctx context.Context) (*Lock, error) {
	for {
		var waiter *behind
		a.line, waiter = a.client.lines.Enter(a.key, shows{&a.set.terms, a.until})
		if waiter == nil {
			return a.wait(ctx, "")
		}
		got, err := a.await(waiter)
		switch {
		case err != nil:
			return nil, a.stopped(err)
		case got.err != nil:
			return nil, a.stopped(got.err)
		case got.tenure == nil:
			return a.wait(ctx, got.owner)
		}
		l, lost := got.tenure.lock(a.parent(ctx), false)
		switch {
		case lost != nil: // on the way: stand in line again
			got.tenure.decline()
		case a.until.Err() != nil:
			err := a.until.Err()
			// its errors say no more than the lease does
			go func() { _ = l.Release(context.WithoutCancel(ctx)) }()
			return nil, a.stopped(err)
		default:
			return l, nil
		}
	}
}

// await blocks until the waiter's turn. A turn that crosses with the end of the wait is passed on.
func (a *attempt) await(w *behind) (turn, error) {
	var err error
	select {
	case got := <-w.Turn():
		return got, nil
	case <-a.until.Done():
		err = a.until.Err()
	case <-a.client.closing.Done():
		err = ErrClosed
	}
	if w.GiveUp() {
		return turn{}, err
	}
	switch got := <-w.Turn(); {
	case got.err != nil:
	case got.tenure != nil:
		got.tenure.decline()
	case !a.abdicate(got.owner, nil) && got.owner != "":
		a.giveUp(got.owner)
	}
	return turn{}, err
}

// stopped is the error of a wait that ended in the line of this process.
func (a *attempt) stopped(err error) error {
	w := &wait{attempt: a, last: a.client.holder(a.key, a.name)}
	if errors.Is(err, ErrUnreachable) && a.until.Err() == nil {
		return w.error(fmt.Errorf("%w: another goroutine of this process asked for the lock", ErrUnreachable))
	}
	if w.last == nil && min(a.client.calls.Silent(), time.Since(a.began)) >= silence {
		w.asking = time.Now().Add(-silence) // the goroutine that leads has no answer
	}
	return w.failed(err)
}

// holder says who of this process has the lock, for those who stop waiting in its line; nil if
// nobody has.
func (c *Client) holder(key, name string) *BusyError {
	h, waiting, _ := c.lines.Find(key)
	if h == nil {
		return nil
	}
	fence, until := h.stands()
	return &BusyError{Name: name, Holder: parseHolder(h.owner, fence), Remaining: max(0, time.Until(until)), Waiters: waiting}
}
