// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// kind is the deployment.
type kind int

const (
	onAny kind = iota // in a profile: a single server or a Cluster
	onSingle
	onCluster
	onQuorum // independent servers
)

func (k kind) String() string {
	return [...]string{"any", "single", "cluster", "quorum"}[k]
}

// Options are the settings of a schedule beside its seed.
type Options struct {
	Profile string    // weights for what is rare, see profiles; "": all is possible
	Source  string    // of the library; "": the real one
	Trace   io.Writer // gets all events; nil: nobody does
}

// run is one schedule.
type run struct {
	Options
	seed    uint64
	profile profile
	rng     *rand.Rand

	kind       kind
	toReplicas bool
	noCache    bool
	autoLoad   bool
	peaceful   bool
	latency    time.Duration
	keepAlive  time.Duration // between the pings of rueidis
	world      *redis.World
	nodes      []*redis.Node
	clocks     []wander      // of a quorum
	absent     []*redis.Node // of a quorum: never there
	replicas   int           // of each primary
	names      []string
	slots      []*slot
	seen       *observer
	dead       []*process // stopped for good; guarded by the observer's mutex
	work       sync.WaitGroup
}

// Run runs the schedule of a seed, and returns what it did. It fails t only for what makes the run
// itself worthless.
func Run(t *testing.T, seed uint64, opt Options) *Report {
	t.Helper()
	seedRandom(t, seed)
	var report *Report
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 0))
		mix, err := mixOf(opt.Profile, rng)
		if err != nil {
			t.Fatal(err)
		}
		r := &run{Options: opt, seed: seed, profile: mix, rng: rng}
		r.Source = cmp.Or(opt.Source, functions.Source)
		began := time.Now()
		r.build(t)
		r.play()
		report = r.seen.report
		report.Schedules = 1
		report.Virtual = time.Since(began)
		report.Count(Levels, fmt.Sprintf("%v, %s", r.kind, r.profile.level()), 1)
	})
	return report
}

// build makes the deployment and the processes.
func (r *run) build(t *testing.T) {
	p := r.profile
	r.kind = []kind{onSingle, onCluster, onCluster}[r.rng.IntN(3)]
	if p.kind != onAny {
		r.kind = p.kind
	}
	flavour := redis.Flavour(r.rng.IntN(3))
	r.toReplicas, r.noCache = r.rng.IntN(6) == 0, r.rng.IntN(5) == 0
	r.autoLoad, r.peaceful = r.rng.IntN(3) == 0, r.rng.IntN(12) == 0 && !p.onlyFaults
	r.latency = []time.Duration{60, 200, 200, 1000, 4000}[r.rng.IntN(5)] * time.Microsecond
	r.keepAlive = []time.Duration{time.Second, 20 * time.Second, 60 * time.Second, 60 * time.Second}[r.rng.IntN(4)]
	opt := redis.Options{Seed: r.seed, Flavour: flavour, Latency: r.latency, Early: flavour != redis.Redis70 && r.rng.IntN(2) == 0}
	if p.early {
		opt.Flavour, opt.Early = redis.Redis80, true
	}
	if p.step > 0 {
		opt.Flavour, opt.Early, opt.Step = redis.Redis70, false, p.step
	} else if opt.Flavour == redis.Redis70 {
		opt.Step = []time.Duration{0, time.Microsecond, 10 * time.Microsecond}[r.rng.IntN(3)]
	}
	for i := range 1 + r.rng.IntN(r.most(4, 2)) {
		if p.oneLock && i > 0 || r.kind == onQuorum && i > 1 { // each call is several
			break
		}
		r.names = append(r.names, fmt.Sprintf("%c%d", 'a'+i, r.rng.IntN(1000)))
	}
	r.seen = newObserver(r.seed, r.Profile, p, r.names)
	crowds, values := rand.New(rand.NewPCG(r.seed, 1)), rand.New(rand.NewPCG(r.seed, 2))
	for i, name := range r.names {
		r.seen.locks[name].crowd = r.kind != onQuorum && crowds.IntN(3*r.most(2, 1)) < 1+i
		if r.kind != onQuorum && (values.IntN(5) == 0 || p.values) {
			r.seen.locks[name].every = between(values, 20*time.Millisecond, 30*time.Second)
			r.seen.locks[name].crowd = false
		}
	}
	r.seen.history.trace = r.Trace
	r.seen.slack, r.seen.latency = 30*opt.Step, max(r.latency, 0)
	opt.Unmodelled = func(node, text string) { t.Errorf("seed %d: %s: not modelled: %s", r.seed, node, text) }
	opt.Hooks = redis.Hooks{Write: r.seen.wrote, Call: r.seen.called, Publish: r.seen.published}
	r.world = redis.New(opt)
	r.deploy(t)
	r.seen.tell("", "world", "%v, %v, %d nodes, absent %q, latency %v, step %v, early %v, peaceful %v", r.kind, opt.Flavour, len(r.nodes),
		addrs(r.absent), opt.Latency, opt.Step, opt.Early, r.peaceful)
	processes := 2 + r.rng.IntN(r.most(5, 2))
	if r.kind == onQuorum {
		processes = min(processes, 4)
	}
	for i := range processes {
		r.slots = append(r.slots, &slot{})
		if err := r.open(t.Context(), i); err != nil {
			t.Fatalf("seed %d: open: %v", r.seed, err)
		}
	}
}

func (r *run) deploy(t *testing.T) {
	primaries := 1
	switch r.kind {
	case onCluster:
		primaries = 1 + r.rng.IntN(3)
		r.replicas = 1 + r.rng.IntN(2)
		r.nodes = r.world.Cluster(primaries, r.replicas)
	case onQuorum:
		primaries = 3 + 2*r.rng.IntN(2)
		r.seen.need = primaries/2 + 1
		for i := range primaries {
			r.nodes = append(r.nodes, r.world.Node(fmt.Sprintf("q%d:6379", i+1)))
		}
		r.disagree()
		r.miss()
	default:
		r.nodes = []*redis.Node{r.world.Node("a:6379")}
		r.replicas = 1 + r.rng.IntN(2)
		for i := range r.replicas {
			r.nodes = append(r.nodes, r.world.Replica(fmt.Sprintf("%c:6379", 'b'+i), r.nodes[0]))
		}
	}
	for _, n := range r.nodes[:primaries] {
		if slices.Contains(r.absent, n) {
			continue
		}
		if got := n.Do("FUNCTION", "LOAD", "REPLACE", r.Source); got != functions.Library {
			t.Fatalf("seed %d: FUNCTION LOAD: %v", r.seed, got)
		}
	}
}

// play goes through the phases of the schedule: work under faults, hours of peace, work again, and
// the end.
func (r *run) play() {
	audits, auditing, idle := make(chan struct{}), sync.WaitGroup{}, atomic.Bool{} // idle: few things happen
	auditing.Go(func() {
		for {
			select {
			case <-audits:
				return
			case <-time.After(r.seen.rest(idle.Load()) + 137*time.Nanosecond):
				r.seen.audit()
			}
		}
	})
	length := time.Duration(20+r.rng.IntN(100)) * time.Second
	if r.profile.length > 0 {
		length = r.profile.length
	}
	r.busy(length)
	if hours := r.hours(); hours > 0 {
		idle.Store(true)
		r.idle(hours)
		idle.Store(false)
		r.busy(time.Duration(10+r.rng.IntN(20)) * time.Second)
	}
	r.settle()
	close(audits)
	auditing.Wait()
	r.end()
}

// most is how many there are of something, at the most: of a brief schedule fewer.
func (r *run) most(normal, brief int) int {
	if r.profile.brief {
		return brief
	}
	return normal
}

func (r *run) hours() time.Duration {
	if r.profile.busy {
		return 0
	}
	hours := 4 + r.rng.Float64()*20
	if r.keepAlive == time.Second { // pings each second make them dear
		hours /= 8
	}
	return time.Duration(hours * float64(time.Hour))
}

// busy is work by all processes, under faults. Where it ends in peace, all work at leisure then: what
// the faults left behind is to be found, and a turn now and then does that.
func (r *run) busy(length time.Duration) {
	ease := time.Time{}
	if end := r.profile.calmEnd; end > 0 {
		ease = time.Now().Add(length - end)
	}
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	for i, s := range r.slots {
		for j := range 1 + r.rng.IntN(r.most(3, 2)) {
			a := &actor{run: r, slot: s, who: fmt.Sprintf("p%d/%d", i+1, j), rng: rand.New(rand.NewPCG(r.seed, r.rng.Uint64())), ease: ease}
			r.work.Go(func() { a.work(ctx) })
		}
	}
	var faults sync.WaitGroup // from here on the random numbers of the run are theirs
	if !r.peaceful {
		faults.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, length-r.profile.calmEnd)
			defer cancel()
			r.hurt(ctx)
		})
	}
	r.join("work", length)
	faults.Wait()
	r.bury()
}

// bury closes the clients of processes that were stopped: what they go on doing costs real time,
// and they are cut off.
func (r *run) bury() {
	var closing sync.WaitGroup
	for _, p := range r.dead {
		closing.Go(p.close)
	}
	closing.Wait()
}

// join waits for all actors. One that does not come back is a violation.
func (r *run) join(what string, length time.Duration) {
	done := make(chan struct{})
	go func() {
		r.work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(length + 15*time.Minute):
		r.seen.breaks(r.names[0], 6, "calls of the %s do not return", what)
		panic(r.seen.report.Broken[0].String())
	}
}

// settle waits until all that was left behind is over, and looks whether each lock can be had.
func (r *run) settle() {
	for i, s := range r.slots {
		if s.alive() == nil {
			if p := s.process(); p != nil {
				p.close()
			}
			_ = r.open(context.Background(), i)
		}
	}
	time.Sleep(recovery)
	if r.kind == onQuorum {
		time.Sleep(r.profile.guard)
	}
	p := r.slots[0].process()
	for _, name := range r.names {
		// Who asked for nothing since a failover learns of it by its next call, and connects.
		_, _ = p.c.Inspect(context.Background(), name)
		r.last(p, name)
	}
}

// end closes everything, and looks at what is left.
func (r *run) end() {
	var closing sync.WaitGroup
	for _, s := range r.slots {
		closing.Go(s.process().close)
	}
	closing.Wait()
	// Leases of the last Locks, a line's minute, and the record of a break by a clock that was set back.
	time.Sleep(10 * time.Minute)
	for _, n := range r.nodes {
		if n.Primary() != nil {
			continue
		}
		for _, name := range r.names {
			if left := n.Hash(prefix + name); left != nil {
				r.seen.breaks(name, 8, "the key is there after all: %v", left)
			}
		}
	}
	r.seen.stop()
	r.world.Close()
	time.Sleep(10 * time.Second)
}
