package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/functions"
)

// attempt is one call of TryAcquire or Acquire.
type attempt struct {
	client *Client
	name   string
	key    string
	owner  string
	hold   string    // "" for an acquisition with an owner of its own
	set    *settings // the client's own, or a copy that options changed; never written after
	room   *room     // its line inside the process; nil if it does not share

	started time.Time // Acquire: when the wait began, all of it

	question question // set: remember the answer 'busy' until the key changes
}

func (c *Client) attempt(name string, opts []Option) (*attempt, error) {
	key, err := c.key(name)
	if err != nil {
		return nil, err
	}
	a := &attempt{client: c, name: name, key: key, set: &c.settings}
	if len(opts) > 0 {
		set := c.settings
		for _, o := range opts {
			o(&set)
		}
		if err := set.validate(); err != nil {
			return nil, err
		}
		a.set = &set
	}
	if c.closing.Err() != nil {
		return nil, ErrClosed
	}
	if a.owner = a.set.owner; a.owner != "" {
		a.hold = c.holdID()
	}
	return a, nil
}

// identify makes the owner string, before the first command.
func (a *attempt) identify() {
	if a.owner == "" {
		a.owner = a.client.owner(a.set.label)
	}
}

// block is how many tokens an acquisition that finds the lock free reserves: a run if others of this process wait for it.
func (a *attempt) block() int64 {
	if a.room != nil && a.room.crowded() {
		return passRun
	}
	return 1
}

// try asks once. until bounds the call, ctx is the lock's.
func (a *attempt) try(ctx, until context.Context) (*Lock, *BusyError, error) {
	block, sent := a.block(), time.Now()
	var r reply
	var err error
	switch {
	case a.hold != "":
		r, err = a.client.acquireHold(until, a.key, a.owner, a.set.ttl, a.hold)
	case a.question.view != nil:
		r, err = a.client.acquireTracked(until, a.key, a.owner, a.set.ttl)
	default:
		r, err = a.client.acquire(until, a.key, a.owner, a.set.ttl, block)
	}
	if err != nil {
		if unknown(err) {
			a.giveUp(a.owner, a.hold)
		}
		return nil, nil, err
	}
	if !r.yes {
		busy := r.busy(a.name)
		a.remember(busy, sent)
		return nil, busy, nil
	}
	if a.question.view != nil {
		a.client.cache.drop(a.key)
	}
	l, err := a.granted(ctx, r.fence, block, sent, sent.Add(a.set.lease-margin(a.set.lease)))
	return l, nil, err
}

// remember that the lock is busy, for the tries that follow: the first time only that it was, the next time until when.
func (a *attempt) remember(busy *BusyError, sent time.Time) {
	switch {
	case a.room != nil: // those who wait have no use for it
	case a.question.view == nil:
		a.client.cache.notice(a.key)
	case busy.Remaining > 0:
		a.client.cache.keep(a.question, busy, nil, sent, busy.Remaining)
	}
}

// granted makes the Lock that the server granted. A grant that took so long that its lease is over is given back.
func (a *attempt) granted(ctx context.Context, fence, block int64, sent, until time.Time) (*Lock, error) {
	h := a.newHeld(fence, block, sent, until)
	if !time.Now().Before(until) {
		a.giveUp(a.owner, a.hold)
		return nil, fmt.Errorf("%w: the answer took longer than the lease", ErrUnreachable)
	}
	l, err := h.lock(ctx, a.hold)
	if err == nil {
		err = a.client.renewals.add(h)
	}
	if err != nil {
		a.giveUp(a.owner, a.hold)
		return nil, err
	}
	if a.room != nil {
		a.room.took(h)
	}
	return l, nil
}

// giveUp undoes, in the background, what a call whose outcome is unknown may have done. The lease bounds what this
// cannot undo.
func (a *attempt) giveUp(owner, hold string) {
	c, key := a.client, a.key
	a.undo(func(ctx context.Context) error {
		if hold == "" {
			return c.leave(ctx, key, owner)
		}
		_, err := c.release(ctx, key, owner, hold)
		return err
	})
}

// leaveLine ends a wait: in the background, or at once for Close, which waits for it.
func (a *attempt) leaveLine() {
	if a.client.closing.Err() == nil {
		a.undo(a.quit)
		return
	}
	ctx, cancel := context.WithTimeout(a.client.working, closeWait)
	defer cancel()
	_ = a.quit(ctx) // if it fails, the line finds nobody to tell here and goes on to the next
}

// quit leaves the line. Under a shared owner the lock may be held by another process meanwhile, and giving it back would
// take it away: then a grant that crossed with this lapses unconfirmed.
func (a *attempt) quit(ctx context.Context) error {
	c := a.client
	if a.hold == "" {
		return c.leave(ctx, a.key, a.owner)
	}
	if _, err := c.release(ctx, a.key, a.owner, a.hold); err != nil {
		return err
	}
	return c.leaveLine(ctx, a.key, a.owner)
}

// undo runs clean-up in the background until the server has answered it.
func (a *attempt) undo(clean func(context.Context) error) {
	a.client.detach(min(a.set.lease, 5*time.Second), func(ctx context.Context) {
		for pause := 5 * time.Millisecond; ; pause *= 2 {
			if err := clean(ctx); err == nil || !errors.Is(err, ErrUnreachable) || !pauseFor(ctx, pause) {
				return
			}
		}
	})
}

// holdID names a hold: unlike any other of this owner, also of other processes.
func (c *Client) holdID() string {
	id := c.identity[len(c.identity)-16:] + "." + c.next()
	return id[:min(len(id), functions.MaxHoldBytes)]
}
