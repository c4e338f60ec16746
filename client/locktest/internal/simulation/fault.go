// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// hurt injects faults until ctx ends: bursts, with calm between them. Faults of servers follow each
// other; those of networks and processes may overlap them.
func (r *run) hurt(ctx context.Context) {
	rngs := [2]*rand.Rand{rand.New(rand.NewPCG(r.seed, r.rng.Uint64())), rand.New(rand.NewPCG(r.seed, r.rng.Uint64()))}
	least, most, apart := 300*time.Millisecond, 6*time.Second, 2*time.Second
	if r.profile.brief {
		least, most, apart = 10*time.Millisecond, 2*time.Second, 300*time.Millisecond
	}
	for pause(ctx, between(rngs[0], least, most)) {
		var both sync.WaitGroup
		for i, faults := range [][]fault{networkFaults, serverFaults} {
			f := &injector{run: r, ctx: ctx, rng: rngs[i]}
			both.Go(func() {
				for range f.rng.IntN(4) {
					f.one(faults)
					pause(ctx, between(f.rng, time.Millisecond, apart))
				}
			})
		}
		both.Wait()
		if r.profile.brief {
			continue
		}
		calm := between(rngs[0], 5*time.Second, 30*time.Second)
		if r.profile.calm > 0 {
			calm = r.profile.calm
		}
		if (r.profile.calm > 0 || r.rng.IntN(2) == 0) && !pause(ctx, calm) {
			return
		}
	}
}

// injector injects one fault after the other.
type injector struct {
	run *run
	ctx context.Context
	rng *rand.Rand
}

// odds are something that can happen, and how likely it is in the normal mix.
type odds[T any] struct {
	name   string
	normal int
	do     func(T)
}

// weight is how likely it is; of, if it has the name, says so instead.
func (x odds[T]) weight(of map[string]int, only bool) int {
	if w, ok := of[x.name]; ok {
		return w
	}
	if only {
		return 0
	}
	return x.normal
}

// draw chooses one by its weight; nil if all have none.
func draw[T any](rng *rand.Rand, all []odds[T], of map[string]int, only bool) *odds[T] {
	total := 0
	for _, x := range all {
		total += x.weight(of, only)
	}
	if total == 0 {
		return nil
	}
	at := rng.IntN(total)
	for i, x := range all {
		if at -= x.weight(of, only); at < 0 {
			return &all[i]
		}
	}
	return nil
}

type fault = odds[*injector]

func (in *injector) one(faults []fault) {
	if f := draw(in.rng, faults, in.run.profile.faults, in.run.profile.onlyFaults); f != nil {
		f.do(in)
	}
}

func (in *injector) wait(least, most time.Duration) {
	if in.run.profile.brief {
		most = max(2*least, most/briefly)
	}
	pause(in.ctx, between(in.rng, least, most))
}

var networkFaults = []fault{
	{"stall", 10, func(in *injector) {
		in.stall("stall", redis.Direction(in.rng.IntN(3)), 500*time.Microsecond, 40*time.Second)
	}},
	{"reset", 8, (*injector).reset},
	{"delay", 8, (*injector).delay},
	{"refuse", 5, func(in *injector) {
		in.spell("refuse", time.Millisecond, 10*time.Second, func(w *redis.World, p redis.Path, on bool) {
			if w.Refuse(p, on); on {
				w.Reset(p)
			}
		})
	}},
	{"silence", 4, func(in *injector) {
		in.spell("silence", time.Millisecond, 8*time.Second, func(w *redis.World, p redis.Path, on bool) {
			w.Silence(p, on)
			w.Reset(p)
		})
	}},
	{"lost replies", 8, (*injector).loseReplies},
	{"deaf", 2, (*injector).deafen},
	{"lost and refused", 4, (*injector).loseAndRefuseDial},
	{"close", 4, (*injector).closeOne},
	{"stop", 3, (*injector).stopOne},
}

// spell is a fault of the network that is on for a while.
func (in *injector) spell(kind string, least, most time.Duration, set func(w *redis.World, p redis.Path, on bool)) {
	p, text := in.path()
	defer in.harm(kind, p, text, false)()
	set(in.run.world, p, true)
	in.wait(least, most)
	set(in.run.world, p, false)
}

// path chooses one process or all, one node or all.
func (in *injector) path() (redis.Path, string) {
	p, text := redis.Path{}, "all processes"
	if in.rng.IntN(4) > 0 {
		if process := in.victim(); process != nil {
			p.Host, text = process.label, process.label
		}
	}
	if in.rng.IntN(3) == 0 || in.run.kind == onQuorum && in.rng.IntN(2) == 0 {
		p.Node = in.run.nodes[in.rng.IntN(len(in.run.nodes))]
		text += " and " + p.Node.Addr()
	}
	return p, text
}

func (in *injector) victim() *process { return in.run.slots[in.rng.IntN(len(in.run.slots))].alive() }

// harm notes that a part of the network is at fault, until the function that it returns is called.
// cut: nothing comes through at all.
func (in *injector) harm(kind string, p redis.Path, text string, cut bool) (end func()) {
	o := in.run.seen
	over := o.fault(kind, "%s", text)
	mark := func(on bool, by int) {
		for label, h := range o.hosts {
			if p.Host != "" && p.Host != label {
				continue
			}
			if h.faulty = time.Now(); h.harmed+by > 0 {
				h.faulty = h.faulty.Add(1000 * time.Hour)
			}
			if h.harmed += by; cut && p.Node == nil {
				if h.cut = (time.Time{}); on {
					h.cut = time.Now()
				}
			}
		}
	}
	o.locked(func() { mark(true, 1) })
	return func() {
		o.locked(func() { mark(false, -1) })
		over()
	}
}

// stall stops what is sent. Then it arrives, or is lost with its connections.
func (in *injector) stall(kind string, d redis.Direction, least, most time.Duration) {
	p, text := in.path()
	defer in.harm(kind, p, fmt.Sprintf("%s, direction %d", text, d), d == redis.Both)()
	in.run.world.Stall(p, d)
	in.wait(least, most)
	if in.rng.IntN(2) == 0 {
		in.run.world.Resume(p)
	} else {
		in.run.world.Drop(p)
	}
	in.revive()
}

// revive stalls again those that were stopped for good: a Resume that covers them ended that.
func (in *injector) revive() {
	var dead []*process
	in.run.seen.locked(func() { dead = slices.Clone(in.run.dead) })
	for _, p := range dead {
		in.run.world.Stall(redis.Path{Host: p.label}, redis.Both)
	}
}

func (in *injector) reset() {
	p, text := in.path()
	defer in.harm("reset", p, text, false)()
	for range 1 + in.rng.IntN(3) {
		in.run.world.Reset(p)
		in.wait(10*time.Microsecond, 50*time.Millisecond)
	}
}

func (in *injector) delay() {
	p, text := in.path()
	d := between(in.rng, time.Millisecond, 600*time.Millisecond)
	defer in.harm("delay", p, fmt.Sprintf("%s by %v", text, d), false)()
	in.run.world.Delay(p, d)
	in.wait(200*time.Millisecond, 20*time.Second)
	in.run.world.Delay(p, max(in.run.latency, time.Microsecond))
}

func (in *injector) loseReplies() {
	n := in.run.nodes[in.rng.IntN(len(in.run.nodes))]
	defer in.harm("lost replies", redis.Path{}, n.Addr(), false)()
	rng, percent := rand.New(rand.NewPCG(in.rng.Uint64(), 0)), 5+in.rng.IntN(60)
	n.LoseReply(func(cmd []string) bool { return cmd[0] == "FCALL" && rng.IntN(100) < percent })
	in.wait(50*time.Millisecond, 5*time.Second)
	n.LoseReply(nil)
}

// deafen keeps all answers from a process for longer than a lease, while its requests arrive: it
// loses its locks, and the server goes on renewing them until then.
func (in *injector) deafen() {
	p := in.victim()
	if p == nil {
		return
	}
	path := redis.Path{Host: p.label}
	defer in.harm("deaf", path, p.label, false)()
	in.run.world.Stall(path, redis.ToClient)
	lease := in.run.profile.lease
	if !in.run.profile.brief || lease == 0 {
		lease = 30 * time.Second // a usual one
	}
	pause(in.ctx, between(in.rng, lease-lease/30, lease+lease/5))
	in.run.world.Resume(path)
	in.revive()
}

// loseAndRefuseDial runs calls and loses their answers with the connections, and refuses new ones
// for a moment.
func (in *injector) loseAndRefuseDial() {
	defer in.harm("lost and refused", redis.Path{}, "all", false)()
	for _, n := range in.run.nodes {
		n.LoseReply(func(cmd []string) bool { return cmd[0] == "FCALL" })
	}
	in.run.world.Refuse(redis.Path{}, true)
	in.wait(30*time.Millisecond, 2*time.Second)
	for _, n := range in.run.nodes {
		n.LoseReply(nil)
	}
	in.run.world.Refuse(redis.Path{}, false)
}

// closeOne closes a client, and opens another one in its place.
func (in *injector) closeOne() {
	for i, s := range in.run.slots {
		if p := s.alive(); in.rng.IntN(len(in.run.slots)) == 0 && p != nil {
			end := in.run.seen.fault("close", "%s", p.label)
			p.close()
			_ = in.run.open(in.ctx, i)
			end()
			return
		}
	}
}

// stopOne stops a process for good, and opens another one in its place.
func (in *injector) stopOne() {
	i := in.rng.IntN(len(in.run.slots))
	p := in.run.slots[i].alive()
	if p == nil {
		return
	}
	defer in.run.seen.fault("stop", "%s", p.label)()
	p.die()
	in.run.seen.locked(func() { in.run.dead = append(in.run.dead, p) })
	in.wait(time.Millisecond, 3*time.Second)
	_ = in.run.open(in.ctx, i)
}
