package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/integration/reexec"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/redis/rueidis"
)

// site is a deployment of Redis that has the functions of Holdfast.
type site struct {
	deployments []*server.Deployment
	primaries   []*server.Node
	gauges      []*gauge // of the primaries
	place       place
}

// world is the servers that the workloads share, started when first needed.
type world struct {
	single     *site
	crowded    *site // 300,000 other keys with a TTL are in it
	clustered  *site
	replicated *site
	majority   *site // several servers that know nothing of each other
	etcd       *reexec.Process
	etcdAddr   string
}

// otherKeys is how many keys with a TTL crowd a database.
const otherKeys = 300_000

func (w *world) start(ctx context.Context, spec server.Spec) (*site, error) {
	// A container costs the network a proxy or a bridge, which the numbers should not have. Own:
	// nothing of this may touch a server that others use, since databases are emptied.
	if os.Getenv("HOLDFAST_RUNTIME") == "" {
		if err := os.Setenv("HOLDFAST_RUNTIME", string(server.Local)); err != nil {
			return nil, err
		}
	}
	spec.Own = true
	d, err := server.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	s := &site{deployments: []*server.Deployment{d}, place: place{Redis: d.Addrs(), Cluster: spec.Kind == server.KindCluster}}
	if err = d.LoadFunctions(ctx); err == nil {
		s.primaries, err = d.Primaries(ctx)
	}
	if err == nil {
		err = house(ctx, d)
	}
	for _, n := range s.primaries {
		var g *gauge
		if g, err = openGauge(n.Addr); err != nil {
			break
		}
		s.gauges = append(s.gauges, g)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return s, nil
}

// redis returns the single server, emptied.
func (w *world) redis(ctx context.Context) (*site, error) {
	if w.single == nil {
		s, err := w.start(ctx, server.Spec{Kind: server.KindSingle})
		if err != nil {
			return nil, err
		}
		w.single = s
	}
	return w.single, w.single.empty(ctx)
}

// cluster returns the Cluster of three primaries, emptied.
func (w *world) cluster(ctx context.Context) (*site, error) {
	if w.clustered == nil {
		s, err := w.start(ctx, server.Spec{Kind: server.KindCluster})
		if err != nil {
			return nil, err
		}
		w.clustered = s
	}
	return w.clustered, w.clustered.empty(ctx)
}

// crowd returns the server with many other keys.
func (w *world) crowd(ctx context.Context) (*site, error) {
	if w.crowded != nil {
		return w.crowded, nil
	}
	s, err := w.start(ctx, server.Spec{Kind: server.KindSingle})
	if err != nil {
		return nil, err
	}
	w.crowded = s
	c, err := rueidis.NewClient(s.place.option())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	const batch = 1000
	for i := 0; i < otherKeys; i += batch {
		commands := make(rueidis.Commands, batch)
		for j := range commands {
			commands[j] = c.B().Set().Key("other:" + strconv.Itoa(i+j)).Value("x").ExSeconds(86400).Build()
		}
		for _, r := range c.DoMulti(ctx, commands...) {
			if err := r.Error(); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// whereFor returns where a rival works, with a database that is empty as far as this program goes.
func (w *world) whereFor(ctx context.Context, r rival) (*site, error) {
	s, err := w.redis(ctx)
	if err != nil || !r.Etcd {
		return s, err
	}
	if w.etcd == nil {
		if w.etcd, err = reexec.Start(roleEtcd, nil); err != nil {
			return nil, err
		}
		if w.etcdAddr, err = w.etcd.Hear(); err != nil {
			return nil, err
		}
	}
	return &site{place: place{Etcd: w.etcdAddr}}, nil
}

// account is what the server of the site did since it started; of etcd only the CPU time is known.
func (w *world) account(s *site) (account, error) {
	if s.place.Etcd == "" {
		a := account{Calls: map[string]int64{}}
		for _, g := range s.gauges {
			if err := g.read(&a); err != nil {
				return a, err
			}
		}
		return a, nil
	}
	if err := w.etcd.Say("cpu"); err != nil {
		return account{}, err
	}
	line, err := w.etcd.Hear()
	if err != nil {
		return account{}, err
	}
	ns, err := strconv.ParseInt(line, 10, 64)
	return account{CPU: time.Duration(ns)}, err
}

// empty deletes all keys; functions stay.
func (s *site) empty(ctx context.Context) error {
	for _, n := range s.primaries {
		if _, err := n.Do(ctx, "FLUSHALL", "SYNC"); err != nil {
			return fmt.Errorf("empty %s: %w", n.Addr, err)
		}
	}
	return nil
}

// close ends all servers.
func (w *world) close() error {
	var err error
	for _, s := range []*site{w.single, w.crowded, w.clustered, w.replicated, w.majority} {
		if s != nil {
			for _, g := range s.gauges {
				g.close()
			}
			for _, d := range s.deployments {
				err = errors.Join(err, d.Close())
			}
		}
	}
	if w.etcd != nil {
		err = errors.Join(err, w.etcd.Close())
	}
	return err
}
