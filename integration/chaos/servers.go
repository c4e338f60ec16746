package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
)

// servers are the deployment of a round.
type servers struct {
	shape      shape
	deployment *server.Deployment
	nodes      []*server.Node
	mesh       *mesh  // nil if there is none
	source     string // of the library
	autoLoad   bool   // clients load it, where they call
	clocks     *clocks
	failovers  atomic.Int64 // counted when one is begun, and when it is over
}

func startServers(ctx context.Context, s shape, source string,
	autoLoad bool, wrong []time.Duration, steps *clocks) (*servers, error) {
	spec := s.spec
	if len(wrong) > 0 || steps.stepped() {
		spec.Preload = wallClock()
	}
	v := &servers{shape: s, source: source, clocks: steps}
	if s.replicas > 0 && rerouter() != "" {
		spec.Preload = rerouter()
		spec.Before = func(d *server.Deployment) (err error) {
			err = v.mesh.close()
			if err == nil {
				v.mesh, err = newMesh(d)
			}
			return err
		}
	}
	d, err := server.Start(ctx, spec)
	if err != nil {
		return nil, errors.Join(err, v.mesh.close())
	}
	v.deployment, v.nodes = d, d.Nodes()
	if v.mesh != nil && !v.mesh.used() {
		fmt.Fprintln(os.Stderr, "chaos: servers are not cut off from each other: they do not connect by "+
			"the library: is the server linked statically?")
		err, v.mesh = v.mesh.close(), nil
	}
	if v.mesh == nil {
		v.shape.kinds = slices.DeleteFunc(slices.Clone(s.kinds), kind.isCut)
	}
	if err := errors.Join(err, v.load(), v.whole(), steps.choose(s, v.nodes)); err != nil {
		return nil, errors.Join(err, v.close())
	}
	v.autoLoad = autoLoad
	return v, nil
}

func (v *servers) close() error { return errors.Join(v.deployment.Close(), v.mesh.close()) }

// addrs are where clients start from: of a quorum all servers.
func (v *servers) addrs() []string {
	if !v.shape.quorum() {
		return v.deployment.Addrs()
	}
	var all []string
	for _, n := range v.nodes {
		all = append(all, n.Addr)
	}
	return all
}

// roles asks all servers at once.
func (v *servers) roles() map[string]string {
	var mu sync.Mutex
	var all sync.WaitGroup
	roles := map[string]string{}
	for _, n := range v.nodes {
		all.Go(func() {
			r := replicationOf(n.Addr)
			mu.Lock()
			defer mu.Unlock()
			roles[n.Addr] = r.role
		})
	}
	all.Wait()
	return roles
}

// primaries are the addresses of those that take themselves for one.
func (v *servers) primaries() (list []string) {
	roles := v.roles()
	for _, n := range v.nodes {
		if roles[n.Addr] == "master" {
			list = append(list, n.Addr)
		}
	}
	return list
}

// load puts the library on each primary that lacks it, and tries for a while where that fails.
func (v *servers) load() error {
	if v.autoLoad {
		until(time.Second, v.loaded)
	}
	var err error
	until(10*time.Second, func() bool {
		err = nil
		for _, addr := range v.primaries() {
			if tell(addr, "FCALL_RO", "holdfast_version", "0") != nil {
				err = errors.Join(err, tell(addr, "FUNCTION", "LOAD", "REPLACE", v.source))
			}
		}
		return err == nil
	})
	return err
}

// loaded reports whether each primary has the library.
func (v *servers) loaded() bool {
	return !slices.ContainsFunc(v.primaries(), func(addr string) bool {
		return tell(addr, "FCALL_RO", "holdfast_version", "0") != nil
	})
}

// everywhere tells each server that can be asked, in the end: one that is away may be a primary later,
// and one that was killed has its first settings again.
func (v *servers) everywhere(command ...string) error {
	left := slices.Clone(v.nodes)
	var err error
	until(45*time.Second, func() bool {
		err = nil
		left = slices.DeleteFunc(left, func(n *server.Node) bool {
			failed := tell(n.Addr, command...)
			err = errors.Join(err, failed)
			return failed == nil
		})
		return err == nil
	})
	return err
}

// whole blocks until the deployment is as it was at first, but for who is the primary: all run and
// follow, and all agree. The library is loaded where a server lost it.
func (v *servers) whole() error {
	var why string
	if !until(time.Minute, func() bool { why = v.lacks(); return why == "" }) {
		return fmt.Errorf("the deployment is not whole after a minute: %s", why)
	}
	return v.load()
}

// lacks says what is missing.
func (v *servers) lacks() string {
	masters, count := 0, 0
	for _, n := range v.nodes {
		r := replicationOf(n.Addr)
		switch {
		case r.role == "":
			return n.Addr + " does not answer"
		case r.role == "master" && r.replicas != strconv.Itoa(v.shape.replicas):
			return n.Addr + " has " + r.replicas + " replicas"
		case r.role == "slave" && r.link != "up":
			return n.Addr + " does not follow"
		case r.role == "master":
			masters++
		}
		count++
	}
	switch v.deployment.Kind {
	case server.KindCluster:
		if masters != count/2 {
			return fmt.Sprintf("%d are primaries", masters)
		}
		return v.disagree()
	default:
		want := 1
		if v.shape.quorum() {
			want = len(v.nodes)
		}
		if masters != want {
			return fmt.Sprintf("%d are primaries", masters)
		}
	}
	for _, s := range v.deployment.Sentinels() {
		m, err := probe(s.Addr, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", server.SentinelMaster)
		if err != nil {
			return "a sentinel does not answer"
		}
		at, err := m.AsStrSlice()
		if err != nil || len(at) != 2 || !slices.Contains(v.primaries(), at[0]+":"+at[1]) {
			return "a sentinel knows another primary"
		}
		// One that has begun a failover goes on with it, also when the primary is back.
		if m, err = probe(s.Addr, "SENTINEL", "MASTER", server.SentinelMaster); err != nil {
			return "a sentinel does not answer"
		}
		if about, err := m.AsStrMap(); err != nil || about["flags"] != "master" {
			return "a sentinel finds the primary " + about["flags"]
		}
	}
	return ""
}
