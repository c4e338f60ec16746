// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

// reenter takes the lock once more under its own context.
func (t *turn) reenter(outer *holder) {
	b := within(outer.lock.Context(), between(t.rng, time.Millisecond, 10*time.Second), false)
	b.ends = time.Now().Add(time.Second)
	if t.set.limit > 0 && t.chance(30) {
		if _, err := t.process.c.Acquire(b, t.name); !errors.Is(err, client.ErrArgument) && b.Err() == nil {
			t.run.seen.breaks(t.name, 7, "%s wants it alone under its own limit of %d: %v", t.who, t.set.limit, err)
		}
		b.cancel()
		return
	}
	t.again(b, outer, time.Microsecond, time.Second, t.set.kind()...)
}

// cross re-enters the lock about when it is released, by a context that survives it.
func (t *turn) cross(outer *holder) {
	ctx := context.WithoutCancel(outer.lock.Context())
	delay := between(t.rng, time.Nanosecond, 10*t.run.latency)
	inner := &turn{actor: &actor{run: t.run, slot: t.slot, who: t.who + "x", rng: rand.New(rand.NewPCG(t.rng.Uint64(), 0))},
		process: t.process, name: t.name, ctx: t.ctx, set: t.set}
	t.run.work.Go(func() {
		time.Sleep(delay)
		b := within(ctx, 10*time.Second, false)
		inner.again(b, outer, time.Millisecond, 3*time.Second, append(t.set.kind(), client.WithLockContext(context.Background()))...)
	})
	time.Sleep(between(t.rng, time.Nanosecond, 10*t.run.latency))
}

// again acquires a lock that outer has, works for a time from least to most, and releases it.
func (t *turn) again(b *bounded, outer *holder, least, most time.Duration, opts ...client.Option) {
	defer b.cancel()
	c := t.call("re-enter", b)
	c.local = true
	l, err := t.process.c.Acquire(b, t.name, opts...)
	t.run.seen.done(c, err)
	if err != nil {
		return
	}
	h := t.entered(l, outer.began)
	t.workFor(h, between(t.rng, least, most))
	t.release(h)
}
