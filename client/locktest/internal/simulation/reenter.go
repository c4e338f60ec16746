package simulation

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

// reenter takes the lock once more under its own context.
func (t *turn) reenter(outer *holder) {
	b := within(outer.lock.Context(), between(t.rng, time.Millisecond, 10*time.Second), false)
	b.ends = time.Now().Add(time.Second)
	c := t.call("re-enter", b)
	c.local = true
	l, err := t.process.c.Acquire(b, t.name)
	t.run.seen.done(c, err)
	if err != nil {
		b.cancel()
		return
	}
	inner := t.entered(l, outer.began)
	t.workFor(inner, between(t.rng, time.Microsecond, time.Second))
	t.release(inner)
	b.cancel()
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
		defer b.cancel()
		c := inner.call("re-enter", b)
		c.local = true
		l, err := inner.process.c.Acquire(b, inner.name, client.WithLockContext(context.Background()))
		inner.run.seen.done(c, err)
		if err != nil {
			return
		}
		h := inner.entered(l, outer.began)
		inner.workFor(h, between(inner.rng, time.Millisecond, 3*time.Second))
		inner.release(h)
	})
	time.Sleep(between(t.rng, time.Nanosecond, 10*t.run.latency))
}
