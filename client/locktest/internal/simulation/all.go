// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

// all takes all of the locks of the run, works under their one context, and gives them back.
func (t *turn) all() {
	o, names := t.run.seen, slices.DeleteFunc(slices.Clone(t.run.names), func(name string) bool { return t.run.seen.locks[name].every > 0 })
	t.set = t.options(false)
	b := t.bound(5*time.Millisecond, time.Minute)
	defer b.cancel()
	c := t.call("acquire all", b)
	c.all = true
	c.within(t.set.maxWait)
	// It waits for one lock at a time, and nobody outside can tell for which, and which it has.
	w := &want{process: t.process, who: t.who, partly: true, limit: t.set.limit}
	for _, name := range names {
		o.want(name, w)
	}
	opts := append(t.set.options, client.WithLockContext(context.Background()))
	locks, err := t.process.c.AcquireAll(b, names, opts...)
	o.done(c, err)
	var holders []*holder
	for _, name := range names {
		if err == nil {
			one := *t
			one.name = name
			holders = append(holders, one.entered(locks.Lock(name), c.began))
		}
		o.unwant(name, w)
	}
	if err == nil {
		t.holdAll(locks, holders)
	}
}

func (t *turn) holdAll(locks *client.Locks, holders []*holder) {
	o := t.run.seen
	ctx, cancel := context.WithCancel(locks.Context())
	defer context.AfterFunc(t.ctx, cancel)()
	defer cancel()
	pause(ctx, between(t.rng, time.Microsecond, t.longest()))

	b := within(context.Background(), between(t.rng, 20*time.Millisecond, 40*time.Second), t.chance(50))
	defer b.cancel()
	c := t.call("release all", b)
	c.local, c.all = true, true
	err := locks.Release(b)
	o.done(c, err)
	if locks.Context().Err() == nil {
		o.breaks(t.name, 2, "the context of all locks of %s is alive after their Release", t.who)
	}
	for _, h := range holders {
		o.released(h)
	}
	if err == nil && errors.Is(context.Cause(locks.Context()), client.ErrLost) {
		o.breaks(t.name, 7, "Release of all returned nil, and one was lost: %v", context.Cause(locks.Context()))
	}
}
