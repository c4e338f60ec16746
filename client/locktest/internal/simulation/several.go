// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/integration/oracle"
)

// Faults of several independent servers.

const (
	apart = 2 * time.Second // the clocks of two servers differ by no more than twice that, and wrong
	wrong = time.Second     // a clock is stepped by no more than that, in all
)

// wander is a server's clock: what it showed at first, and where steps are around that.
type wander struct {
	offset time.Duration
	drift  float64
}

// disagree sets the clocks of the servers, in some of the schedules.
func (r *run) disagree() {
	r.clocks = make([]wander, len(r.nodes))
	way := r.rng.IntN(4)
	for i, n := range r.nodes {
		c := &r.clocks[i]
		offset, drift := r.rng.Float64()*2-1, r.rng.Float64()*2-1
		if way > 0 {
			c.offset = time.Duration(offset * float64(apart))
		}
		if way > 1 {
			c.drift = drift * 0.001
		}
		r.seen.drift[n] = c.drift
		n.SetClock(c.offset, c.drift)
	}
}

// miss takes a minority away for the whole schedule, in some of them: it refuses connections, or is
// silent. It is no fault: everything must work all the same.
func (r *run) miss() {
	way := r.rng.IntN(6)
	if way > 1 {
		return
	}
	n := 1 + r.rng.IntN(len(r.nodes)/2)
	at := r.rng.IntN(len(r.nodes))
	for i := range n {
		gone := r.nodes[(at+i)%len(r.nodes)]
		r.absent, r.seen.partial = append(r.absent, gone), true
		if way == 0 {
			gone.Kill()
		} else {
			r.world.Stall(redis.Path{Node: gone}, redis.Both)
		}
	}
}

func addrs(nodes []*redis.Node) string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.Addr())
	}
	return strings.Join(all, " ")
}

// several chooses the servers that a fault strikes: mostly one, at times all.
func (in *injector) several() (nodes []*redis.Node, names string) {
	nodes = in.run.which(func(n *redis.Node) bool { return !slices.Contains(in.run.absent, n) })
	in.rng.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	n := 1
	switch in.rng.IntN(8) {
	case 4, 5:
		n = len(nodes) / 2
	case 6:
		n = min(in.run.seen.need, len(nodes))
	case 7:
		n = len(nodes)
	}
	return nodes[:n], addrs(nodes[:n])
}

// strike does something to each of several servers at once.
func (in *injector) strike(nodes []*redis.Node, do func(*injector, *redis.Node)) {
	var all sync.WaitGroup
	for _, n := range nodes {
		one := &injector{run: in.run, ctx: in.ctx, rng: rand.New(rand.NewPCG(in.rng.Uint64(), 0))}
		all.Go(func() { do(one, n) })
	}
	all.Wait()
}

// restarts ends servers and starts them again, most of them without any memory.
func (in *injector) restarts() {
	nodes, names := in.several()
	defer in.server("restarts", names)()
	in.strike(nodes, func(in *injector, n *redis.Node) {
		in.reboot(n, []redis.Disk{redis.Everything, redis.FromSave, redis.Nothing, redis.Nothing}[in.rng.IntN(4)])
	})
}

func (in *injector) pauses() {
	nodes, names := in.several()
	defer in.server("pauses", names)()
	in.strike(nodes, func(in *injector, n *redis.Node) {
		n.Pause()
		in.wait(time.Millisecond, 20*time.Second)
		n.Continue()
	})
}

// delAtOne deletes a lock's key by hand, at one server.
func (in *injector) delAtOne() {
	name := in.run.names[in.rng.IntN(len(in.run.names))]
	n := in.run.nodes[in.rng.IntN(len(in.run.nodes))]
	defer in.server("del at one", name+" at "+n.Addr())()
	at := name + "@" + n.Addr()
	in.run.seen.movingNow([]string{at}, true)
	n.Do("DEL", prefix+name)
	in.run.seen.movingNow([]string{at}, false)
}

// step sets a server's clock a little.
func (in *injector) step() {
	i := in.rng.IntN(len(in.run.nodes))
	n, c := in.run.nodes[i], in.run.clocks[i]
	by := time.Duration((in.rng.Float64() - 0.5) * float64(wrong))
	defer in.server("step", fmt.Sprintf("%s to %v, drift %.4f", n.Addr(), c.offset+by, c.drift))()
	o := in.run.seen
	o.locked(func() { o.retold[n] = oracle.Forward })
	n.SetClock(c.offset+by, c.drift)
	o.retell(n, in.run.names, oracle.Forward)
}

// somebody is who holds a lock, "nobody" if nobody does.
func (o *observer) somebody(name string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, h := range o.locks[name].holders {
		if h.owner != "" && h.alive() {
			return h.owner
		}
	}
	return "nobody"
}
