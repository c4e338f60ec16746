package client

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/holdfast-go/holdfast/functions"
)

// together are the attempts of one AcquireAll, in the order of their names, if one call can be for all
// of them. Each leads the line of its key in this process.
type together []*attempt

// together prepares them. It returns nil if the locks are to be taken one after the other: they are
// in several hash slots or on several servers, are re-entered or joined or polled, need replicas, or
// somebody here has or wants one of them.
func (c *Client) together(ctx, until context.Context, names []string, opts []Option) (all together) {
	if _, single := c.calls.(one); !single || len(names) < 2 || len(names) > functions.MaxLocks {
		return nil
	}
	for _, name := range names {
		a, err := c.attempt(name, opts)
		if err != nil || a.hold != "" || a.set.tries > 0 || a.set.terms.copies.Replicas > 0 || a.outer(ctx) != nil {
			return nil
		}
		if all = append(all, a); c.slot(a.key) != c.slot(all[0].key) {
			return nil
		}
	}
	for i, a := range all {
		if a.line = c.lines.Lead(a.key); a.line == nil {
			all[:i].leave()
			return nil
		}
		a.began, a.until = time.Now(), until
		a.identify()
	}
	return all
}

// atOnce takes all of the locks in one step. It returns nil if that cannot be, or at the moment is
// not, and an error if there is no time left for another way.
func (c *Client) atOnce(ctx, until, parent context.Context, names []string, opts []Option) ([]*Lock, error) {
	if begun(until) != nil || !c.gate.enter() {
		return nil, nil
	}
	defer c.gate.leave()
	all := c.together(ctx, until, names, opts)
	if all == nil {
		return nil, nil
	}
	return all.acquire(ctx, parent)
}

// leave ends the lead of each line.
func (all together) leave() {
	for _, a := range all {
		a.abdicate("", nil)
	}
}

// acquire asks for all of them, by one call. It returns their Locks, each under the context of the
// one before it, or nil, and then none is held, and nobody leads. The end of the wait is an error.
func (all together) acquire(ctx, parent context.Context) (locks []*Lock, _ error) {
	c, terms := all[0].client, &all[0].set.terms
	var keys, owners []string
	for _, a := range all {
		keys, owners = append(keys, a.key), append(owners, a.owner)
	}
	sent := time.Now()
	fences, err := c.calls.(one).AcquireAll(all[0].until, keys, fcall.Request{TTL: terms.ttl, Guard: terms.guard}, owners)
	if err != nil && fcall.Unknown(err) {
		for _, a := range all {
			a.giveUp(a.owner)
		}
	}
	if fences == nil {
		all.leave()
		if err != nil && over(all[0].until) {
			return nil, all.stopped(ctx, sent, err)
		}
		return nil, nil
	}
	for i, a := range all {
		l, err := a.granted(parent, grant{fences[i], 1, lease.New(&a.set.terms.Terms, sent), false})
		if err != nil {
			for _, left := range all[i+1:] {
				left.giveUp(left.owner)
			}
			all[i:].leave()
			abreast(locks, func(_ int, l *Lock) { l.refuse(a.until) })
			return nil, nil
		}
		ask := Ask{a.name, true}
		c.observer.asked(ctx, ask)
		c.answer(ctx, ask, sent, l, nil, nil)
		locks, parent = append(locks, l), l.Context()
	}
	return locks, nil
}

// stopped is the error of a wait that ended in the call: that of the first lock. No answer since it
// was sent is the server's doing, as in the wait for one.
func (all together) stopped(ctx context.Context, sent time.Time, err error) error {
	w := &wait{attempt: all[0], asking: sent}
	ask := Ask{w.name, true}
	w.client.observer.asked(ctx, ask)
	err = w.failed(err)
	w.client.answer(ctx, ask, sent, nil, nil, err)
	return err
}

// abreast gives several locks back at the same time: a server that is silent costs the time of one. The
// last one's context has ended before anybody else can have one of them, because it is under each.
func abreast(locks []*Lock, giveBack func(i int, l *Lock)) {
	var all sync.WaitGroup
	for i, l := range locks {
		all.Go(func() { giveBack(i, l) })
	}
	all.Wait()
}
