// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/client/quorum"
	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/redis/rueidis"
)

// process is a client with its connections, on a host of its own.
type process struct {
	run   *run
	label string // also the host's name
	c     *client.Client
	conns leaks.Conns

	closedAt atomic.Pointer[time.Time]
	dead     atomic.Bool

	// What is known of its network, guarded by the observer's mutex.
	harmed int       // faults under way
	cut    time.Time // since when nothing comes through at all; zero: something does
	faulty time.Time // when the last fault of its network ended; in the future while one lasts
}

func (p *process) isDead() bool   { return p.dead.Load() }
func (p *process) isClosed() bool { return p.closedAt.Load() != nil }
func (p *process) isGone() bool   { return p.isDead() || p.isClosed() }

// slot is where a process runs, and after its end the next one.
type slot struct {
	now atomic.Pointer[process]
	gen atomic.Int32
}

func (s *slot) process() *process { return s.now.Load() }

// alive is the process; nil: it was closed or stopped, and there is no other one yet.
func (s *slot) alive() *process {
	if p := s.process(); p != nil && !p.isGone() {
		return p
	}
	return nil
}

func (r *run) options(host string) rueidis.ClientOption {
	// Small buffers, and a ring with more places than a process can fill before a ping finds that the
	// connection is dead: to make the usual ones costs more than what is sent through them.
	opt := rueidis.ClientOption{DialCtxFn: r.world.Host(host).Dial, MaxFlushDelay: -1,
		ReadBufferEachConn: 1 << 12, WriteBufferEachConn: 1 << 12, RingScaleEachConn: 9,
		RetryDelay: func(attempts int, _ rueidis.Completed, _ error) time.Duration {
			return time.Duration(min(attempts, 10)) * 17 * time.Millisecond
		}}
	// each 5 s would take half of the simulation's time
	opt.Dialer.KeepAlive, opt.ClusterOption.ShardsRefreshInterval = r.keepAlive, time.Minute
	switch r.kind {
	case onSingle:
		opt.InitAddress, opt.ForceSingleClient = []string{r.nodes[0].Addr()}, true
	case onCluster:
		for _, n := range r.nodes {
			opt.InitAddress = append(opt.InitAddress, n.Addr())
		}
		if r.toReplicas {
			opt.SendToReplicas = func(cmd rueidis.Completed) bool { return cmd.IsReadOnly() }
		}
	}
	return opt
}

// connect opens a client.
func (r *run) connect(opt rueidis.ClientOption, cfg client.Config) (*client.Client, error) {
	if r.kind != onQuorum {
		return client.Open(opt, cfg)
	}
	all := make([]rueidis.ClientOption, len(r.nodes))
	for i, n := range r.nodes {
		all[i] = opt
		all[i].InitAddress, all[i].ForceSingleClient = []string{n.Addr()}, true
	}
	return quorum.Open(all, cfg)
}

// covered is a lease that a guard covers, with time for a primary that was deposed and does not know it.
func (r *run) covered(lease time.Duration) time.Duration {
	if r.kind == onQuorum {
		return min(lease, r.profile.guard-wrong)
	}
	if r.profile.guard > 0 {
		return min(lease, r.profile.guard/2)
	}
	return lease
}

// lasting is a lease that does not end before replicas have it.
func (r *run) lasting(lease time.Duration) time.Duration {
	if r.profile.replicated {
		return max(lease, 500*time.Millisecond)
	}
	return lease
}

// open starts a process in a slot, however long that takes.
func (r *run) open(ctx context.Context, i int) error {
	s := r.slots[i]
	label := fmt.Sprintf("p%d.%d", i+1, s.gen.Add(1))
	p := &process{run: r, label: label}
	r.seen.locked(func() { r.seen.hosts[label] = p })
	opt := r.options(label)
	opt.DialCtxFn = p.conns.Counting(opt.DialCtxFn)
	opt.DisableCache = r.noCache && i%2 == 0
	cfg := bed.Quiet(client.Config{Label: label, AutoLoad: r.autoLoad})
	if r.profile.replicated {
		cfg.Replicas = r.replicas
	}
	if cfg.Guard = r.profile.guard; cfg.Guard > 0 {
		cfg.Lease = r.covered(30 * time.Second)
	}
	for {
		c, err := r.connect(opt, cfg)
		if err == nil {
			p.c = c
			s.now.Store(p)
			return nil
		}
		if !pause(ctx, time.Second) {
			return err
		}
	}
}

// close closes the client, and looks at what is left of it.
func (p *process) close() {
	o := p.run.seen
	began := time.Now()
	if !p.closedAt.CompareAndSwap(nil, &began) {
		return
	}
	o.tell("", "fault", "%s closes", p.label)
	p.c.Close()
	took := time.Since(began)
	time.Sleep(3 * time.Second)
	left := p.conns.Open()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.report.Count(Checks, "6 close", 1)
	name := p.run.names[0]
	if took > 1010*time.Millisecond {
		o.broken(name, 6, "Close of %s took %v", p.label, took)
	}
	if left > 0 {
		o.broken(name, 6, "%d connections of %s are left after Close", left, p.label)
	}
}

// die stops a process: its connections say nothing any more, and it does nothing.
func (p *process) die() {
	o := p.run.seen
	p.dead.Store(true)
	o.locked(func() { p.faulty = time.Now().Add(1000 * time.Hour) })
	p.run.world.Stall(redis.Path{Host: p.label}, redis.Both)
}

// pause waits for d, or returns false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
