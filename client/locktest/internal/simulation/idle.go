// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// idle is hours in which each lock has a leader that renews it. Others try now and then, a few wait
// in line, and now and then the network fails for a moment.
func (r *run) idle(length time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	for i, name := range r.names {
		for j := range 1 + r.rng.IntN(2) {
			s := r.slots[(i+j)%len(r.slots)]
			a := &actor{run: r, slot: s, who: fmt.Sprintf("leader%d.%d", i, j), rng: rand.New(rand.NewPCG(r.seed, r.rng.Uint64()))}
			waits := j == 0 || r.rng.IntN(6) == 0
			r.work.Go(func() { a.lead(ctx, name, waits) })
		}
	}
	if !r.peaceful {
		in := &injector{run: r, ctx: ctx, rng: rand.New(rand.NewPCG(r.seed, r.rng.Uint64()))}
		r.work.Go(func() {
			for pause(ctx, between(in.rng, 5*time.Minute, 2*time.Hour)) {
				in.stall("hiccup", redis.Both, time.Millisecond, 8*time.Second)
			}
		})
	}
	r.join("idle hours", length)
}

// lead holds a lock for as long as it can. Who does not wait tries now and then.
func (a *actor) lead(ctx context.Context, name string, waits bool) {
	every := between(a.rng, 5*time.Second, 2*time.Minute)
	for ctx.Err() == nil {
		p := a.slot.alive()
		if p == nil {
			if !pause(ctx, time.Minute) {
				return
			}
			continue
		}
		t := &turn{actor: a, process: p, name: name, ctx: ctx}
		lease := []time.Duration{30 * time.Second, 2 * time.Minute, 2 * time.Minute, 10 * time.Minute}[a.rng.IntN(4)]
		t.set.grace = lease / 3
		b := within(ctx, 24*time.Hour, false)
		opts := []client.Option{client.WithLease(lease)}
		if waits { // not for hours: who waits asks each ten seconds, and that is dear
			t.set.maxWait = between(a.rng, time.Second, 5*time.Minute)
			opts = append(opts, client.WithMaxWait(t.set.maxWait))
		}
		h := t.acquire(b, !waits, opts...)
		if h != nil {
			t.workFor(h, between(a.rng, 10*time.Minute, 10*time.Hour))
			t.release(h)
		}
		if waits = false; !pause(ctx, every) {
			return
		}
	}
}

// last takes and releases a lock at the end, when all is well. A connection that broke while nobody
// used it costs its next call, which rueidis does not repeat: so it tries again. A failover to a server whose
// clock is behind prolongs what a dead owner has, and a minimum, by as much.
func (r *run) last(p *process, name string) {
	a := &actor{run: r, who: "last", rng: rand.New(rand.NewPCG(r.seed, 99))}
	t := &turn{actor: a, process: p, name: name, ctx: context.Background()}
	differ := time.Duration(0)
	for _, n := range r.nodes {
		for _, other := range r.nodes {
			differ = max(differ, n.Now().Sub(other.Now()))
		}
	}
	for until := time.Now().Add(90*time.Second + differ); time.Now().Before(until); time.Sleep(time.Second) {
		if h := t.acquire(within(t.ctx, time.Until(until), false), false); h != nil {
			t.release(h)
			return
		}
	}
	r.seen.breaks(name, 5, "it cannot be had within 90 s of peace, and what clocks differ by")
}
