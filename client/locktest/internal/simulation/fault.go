package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

func itoa(n int) string { return strconv.Itoa(n) }

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

type fault struct {
	name   string
	normal int
	do     func(*injector)
}

func (f fault) weight(p profile) int {
	if w, ok := p.faults[f.name]; ok {
		return w
	}
	if p.onlyFaults {
		return 0
	}
	return f.normal
}

func (in *injector) one(faults []fault) {
	total := 0
	for _, f := range faults {
		total += f.weight(in.run.profile)
	}
	if total == 0 {
		return
	}
	at := in.rng.IntN(total)
	for _, f := range faults {
		if at -= f.weight(in.run.profile); at < 0 {
			f.do(in)
			return
		}
	}
}

func (in *injector) wait(least, most time.Duration) {
	if in.run.profile.brief {
		most = max(2*least, most/briefly)
	}
	pause(in.ctx, between(in.rng, least, most))
}

var networkFaults = []fault{
	{"stall", 10, func(in *injector) { in.stall(redis.Direction(in.rng.IntN(3))) }},
	{"reset", 8, (*injector).reset},
	{"delay", 8, (*injector).delay},
	{"refuse", 5, (*injector).refuse},
	{"silence", 4, (*injector).silence},
	{"lost replies", 8, (*injector).loseReplies},
	{"deaf", 2, (*injector).deafen},
	{"lost and refused", 4, (*injector).loseAndRefuseDial},
	{"close", 4, (*injector).closeOne},
	{"stop", 3, (*injector).stopOne},
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

func (in *injector) victim() *process {
	p := in.run.slots[in.rng.IntN(len(in.run.slots))].process()
	if p == nil || p.isDead() || p.isClosed() {
		return nil
	}
	return p
}

// harm notes that a part of the network is at fault, until the function that it returns is called.
// cut: nothing comes through at all.
func (in *injector) harm(kind string, p redis.Path, text string, cut bool) (end func()) {
	o := in.run.seen
	over := o.fault(kind, "%s", text)
	mark := func(on bool) {
		o.mu.Lock()
		defer o.mu.Unlock()
		for label, h := range o.hosts {
			if p.Host != "" && p.Host != label {
				continue
			}
			if h.harmed += map[bool]int{true: 1, false: -1}[on]; h.harmed == 0 {
				h.faulty = time.Now()
			} else {
				h.faulty = time.Now().Add(1000 * time.Hour)
			}
			if cut && p.Node == nil {
				if h.cut = (time.Time{}); on {
					h.cut = time.Now()
				}
			}
		}
	}
	mark(true)
	return func() { mark(false); over() }
}

func (in *injector) stall(d redis.Direction) {
	p, text := in.path()
	end := in.harm("stall", p, fmt.Sprintf("%s, direction %d", text, d), d == redis.Both)
	in.run.world.Stall(p, d)
	in.wait(500*time.Microsecond, 40*time.Second)
	if in.rng.IntN(2) == 0 {
		in.run.world.Resume(p)
	} else {
		in.run.world.Drop(p)
	}
	in.revive()
	end()
}

// revive stalls again those that were stopped for good: a Resume that covers them ended that.
func (in *injector) revive() {
	o := in.run.seen
	o.mu.Lock()
	dead := append([]*process(nil), in.run.dead...)
	o.mu.Unlock()
	for _, p := range dead {
		in.run.world.Stall(redis.Path{Host: p.label}, redis.Both)
	}
}

func (in *injector) reset() {
	p, text := in.path()
	end := in.harm("reset", p, text, false)
	for range 1 + in.rng.IntN(3) {
		in.run.world.Reset(p)
		in.wait(10*time.Microsecond, 50*time.Millisecond)
	}
	end()
}

func (in *injector) delay() {
	p, text := in.path()
	d := between(in.rng, time.Millisecond, 600*time.Millisecond)
	end := in.harm("delay", p, fmt.Sprintf("%s by %v", text, d), false)
	in.run.world.Delay(p, d)
	in.wait(200*time.Millisecond, 20*time.Second)
	in.run.world.Delay(p, max(in.run.latency, time.Microsecond))
	end()
}

func (in *injector) refuse() {
	p, text := in.path()
	end := in.harm("refuse", p, text, false)
	in.run.world.Refuse(p, true)
	in.run.world.Reset(p)
	in.wait(time.Millisecond, 10*time.Second)
	in.run.world.Refuse(p, false)
	end()
}

func (in *injector) silence() {
	p, text := in.path()
	end := in.harm("silence", p, text, false)
	in.run.world.Silence(p, true)
	in.run.world.Reset(p)
	in.wait(time.Millisecond, 8*time.Second)
	in.run.world.Silence(p, false)
	in.run.world.Reset(p)
	end()
}

func (in *injector) loseReplies() {
	n := in.run.nodes[in.rng.IntN(len(in.run.nodes))]
	end := in.harm("lost replies", redis.Path{}, n.Addr(), false)
	rng, percent := rand.New(rand.NewPCG(in.rng.Uint64(), 0)), 5+in.rng.IntN(60)
	n.LoseReply(func(cmd []string) bool { return cmd[0] == "FCALL" && rng.IntN(100) < percent })
	in.wait(50*time.Millisecond, 5*time.Second)
	n.LoseReply(nil)
	end()
}

// deafen keeps all answers from a process for longer than a lease, while its requests arrive: it
// loses its locks, and the server goes on renewing them until then.
func (in *injector) deafen() {
	p := in.victim()
	if p == nil {
		return
	}
	path := redis.Path{Host: p.label}
	end := in.harm("deaf", path, p.label, false)
	in.run.world.Stall(path, redis.ToClient)
	least, most := in.run.deafness()
	pause(in.ctx, between(in.rng, least, most))
	in.run.world.Resume(path)
	in.revive()
	end()
}

// loseAndRefuseDial runs calls and loses their answers with the connections, and refuses new ones
// for a moment.
func (in *injector) loseAndRefuseDial() {
	end := in.harm("lost and refused", redis.Path{}, "all", false)
	for _, n := range in.run.nodes {
		n.LoseReply(func(cmd []string) bool { return cmd[0] == "FCALL" })
	}
	in.run.world.Refuse(redis.Path{}, true)
	in.wait(30*time.Millisecond, 2*time.Second)
	for _, n := range in.run.nodes {
		n.LoseReply(nil)
	}
	in.run.world.Refuse(redis.Path{}, false)
	end()
}

// closeOne closes a client, and opens another one in its place.
func (in *injector) closeOne() {
	for i, s := range in.run.slots {
		p := s.process()
		if in.rng.IntN(len(in.run.slots)) == 0 && p != nil && !p.isDead() && !p.isClosed() {
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
	p := in.run.slots[i].process()
	if p == nil || p.isDead() || p.isClosed() {
		return
	}
	end := in.run.seen.fault("stop", "%s", p.label)
	p.die()
	in.run.seen.mu.Lock()
	in.run.dead = append(in.run.dead, p)
	in.run.seen.mu.Unlock()
	in.wait(time.Millisecond, 3*time.Second)
	_ = in.run.open(in.ctx, i)
	end()
}
