package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/quorum"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

const (
	copies = 2 // replicas of the primary
	majors = 5 // independent servers of a quorum
	pause  = 15 * time.Second
)

// levels prices what a lock survives. Holdfast's levels run on a primary with replicas, the quorum
// on servers of its own.
func levels(quick bool) workload {
	l := workload{
		Name: "levels", Title: "What safety costs: levels, a quorum, and consensus", Columns: without(usual, mFair),
		Note: fmt.Sprintf("Uncontended, one client, on a primary with %d replicas; a quorum on %d servers without replicas; etcd is one member without fsync, so it shows "+
			"the price of its protocol, and not of its consensus. All servers share one core. Server CPU is that of primaries: a replica's is not counted.", copies, majors),
	}
	for _, goroutines := range []int{1, 64} {
		title := caseAlone
		if goroutines > 1 {
			title = caseDistinct
		}
		l.Cells = append(l.Cells, cell{Case: title, Takes: leveled, Level: true, Run: func(ctx context.Context, w *world, r rival) (values, error) {
			s, err := w.levelFor(ctx, r)
			if err != nil {
				return nil, err
			}
			return w.spread(ctx, s, r, goroutines, goroutines, paceOf(quick))
		}})
	}
	return l
}

func leveled(r rival) bool { return r.Level || r.Etcd || r.Name == holdfastName }

// levelRivals are for the workload levels only.
func levelRivals() []rival {
	level := func(name, settings string, change func(*client.Config)) rival {
		r := holdfastRival()
		r.Name, r.Settings, r.Level = holdfastName+" with "+name, settings, true
		r.Sends = append(slices.Clone(r.Sends), "wait")
		r.Open = func(_ context.Context, p place, u use) (locker, error) {
			cfg := client.Config{Lease: u.Lease}
			change(&cfg)
			c, err := client.Open(p.option(), cfg)
			if err != nil {
				return nil, err
			}
			return holdfastLocker{c}, nil
		}
		return r
	}
	replicas := func(c *client.Config) { c.Replicas = copies }
	guarded := func(c *client.Config) { c.Guard = pause }
	return []rival{
		level("guard", "Config.Guard, with a server that remembers for long enough", guarded),
		level("replicas", fmt.Sprintf("Config.Replicas %d, all that there are", copies), replicas),
		level("both", "with guard and replicas", func(c *client.Config) { guarded(c); replicas(c) }),
		quorumRival(), redsyncQuorum(),
	}
}

// quorumRival is our own.
func quorumRival() rival {
	r := holdfastRival()
	r.Name, r.Level, r.Quorum = fmt.Sprintf("%s on %d servers", holdfastName, majors), true, true
	r.Settings = "quorum.Open, with servers that remember for long enough"
	r.Open = func(_ context.Context, p place, u use) (locker, error) {
		var options []rueidis.ClientOption
		for _, addr := range p.Redis {
			options = append(options, place{Redis: []string{addr}}.option())
		}
		c, err := quorum.Open(options, client.Config{Lease: u.Lease})
		if err != nil {
			return nil, err
		}
		return holdfastLocker{c}, nil
	}
	return r
}

// redsyncQuorum is redsync as its documentation means it: several servers that know nothing of each
// other.
func redsyncQuorum() rival {
	r := redsyncRival()
	r.Name, r.Level, r.Quorum = fmt.Sprintf("redsync on %d servers", majors), true, true
	r.Open = func(_ context.Context, p place, u use) (locker, error) {
		var pools []redsyncredis.Pool
		var closers []func() error
		for _, addr := range p.Redis {
			c := place{Redis: []string{addr}}.goRedis()
			pools, closers = append(pools, goredis.NewPool(c)), append(closers, c.Close)
		}
		return redsyncLocker{redsync.New(pools...), u.Lease, func() {
			for _, end := range closers {
				_ = end()
			}
		}}, nil
	}
	return r
}

// levelFor returns where a level is measured, emptied.
func (w *world) levelFor(ctx context.Context, r rival) (s *site, err error) {
	switch {
	case r.Etcd:
		return w.whereFor(ctx, r)
	case !r.Quorum:
		if w.replicated == nil {
			if w.replicated, err = w.start(ctx, server.Spec{Kind: server.KindReplicated, Replicas: copies}); err != nil {
				return nil, err
			}
		}
		return w.replicated, errors.Join(w.replicated.empty(ctx), remember(ctx, w.replicated.primaries[0]))
	}
	if w.majority == nil {
		w.majority = &site{}
		for range majors {
			one, err := w.start(ctx, server.Spec{Kind: server.KindSingle})
			if err != nil {
				return nil, err
			}
			w.majority.add(one)
		}
	}
	err = w.majority.empty(ctx)
	for _, primary := range w.majority.primaries {
		err = errors.Join(err, remember(ctx, primary))
	}
	return w.majority, err
}

// add makes the servers of another site some of this one.
func (s *site) add(one *site) {
	s.deployments = append(s.deployments, one.deployments...)
	s.primaries, s.gauges = append(s.primaries, one.primaries...), append(s.gauges, one.gauges...)
	s.place.Redis = append(s.place.Redis, one.place.Redis...)
}

// remember makes the memory of a primary old enough for any guard.
func remember(ctx context.Context, primary *server.Node) error {
	m, err := primary.Do(ctx, "FCALL", functions.Memory, "0")
	if err != nil {
		return err
	}
	memory, err := m.AsStrSlice()
	if err != nil || len(memory) != 3 {
		return fmt.Errorf("%s: %v, %w", functions.Memory, memory, err)
	}
	_, err = primary.Do(ctx, "FCALL", functions.Memory, "0", memory[0], memory[1], "1")
	return err
}
