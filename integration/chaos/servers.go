// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
)

// servers are the deployment of a round.
type servers struct {
	shape      shape
	deployment *server.Deployment
	nodes      nodes
	mesh       *mesh        // nil if there is none
	source     string       // of the library
	autoLoad   bool         // clients load it, where they call
	failovers  atomic.Int64 // counted when one is begun, and when it is over
}

func startServers(ctx context.Context, s shape, source string, autoLoad bool) (*servers, error) {
	spec := s.spec
	v := &servers{shape: s, source: source}
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
	if err := errors.Join(err, v.load(), v.whole()); err != nil {
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
	return strings.Fields(v.nodes.String())
}

// roles asks all servers at once.
func (v *servers) roles() map[string]string {
	var mu sync.Mutex
	roles := map[string]string{}
	_ = v.nodes.each(func(n *server.Node) error {
		role := roleOf(n)
		mu.Lock()
		defer mu.Unlock()
		roles[n.Addr] = role
		return nil
	})
	return roles
}

// primaries are those that take themselves for one.
func (v *servers) primaries() (list nodes) {
	roles := v.roles()
	for _, n := range v.nodes {
		if roles[n.Addr] == "master" {
			list = append(list, n)
		}
	}
	return list
}

// load puts the library on each primary that lacks it, and tries for a while where that fails.
func (v *servers) load() error {
	lacking := func() nodes {
		return slices.DeleteFunc(v.primaries(), func(n *server.Node) bool {
			return tell(n, "FCALL_RO", "holdfast_version", "0") == nil
		})
	}
	if v.autoLoad {
		until(time.Second, func() bool { return len(lacking()) == 0 })
	}
	var err error
	until(10*time.Second, func() bool {
		err = lacking().tell("FUNCTION", "LOAD", "REPLACE", v.source)
		return err == nil
	})
	return err
}

// everywhere tells each server that can be asked, in the end: one that is away may be a primary later,
// and one that was killed has its first settings again.
func (v *servers) everywhere(command ...string) error {
	left := slices.Clone(v.nodes)
	var err error
	until(45*time.Second, func() bool {
		err = nil
		left = slices.DeleteFunc(left, func(n *server.Node) bool {
			failed := tell(n, command...)
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
	masters, want := 0, 1
	for _, n := range v.nodes {
		switch roleOf(n) {
		case "":
			return n.Addr + " does not answer"
		case "slave":
			if info(n, "replication", "master_link_status") != "up" {
				return n.Addr + " does not follow"
			}
		default:
			if has := info(n, "replication", "connected_slaves"); has != strconv.Itoa(v.shape.replicas) {
				return n.Addr + " has " + has + " replicas"
			}
			masters++
		}
	}
	switch v.deployment.Kind {
	case server.KindCluster:
		want = len(v.nodes) / 2
	case server.KindSeveral:
		want = len(v.nodes)
	}
	if masters != want {
		return fmt.Sprintf("%d are primaries", masters)
	}
	if v.deployment.Kind == server.KindCluster {
		return v.disagree()
	}
	for _, s := range v.deployment.Sentinels() {
		// One that has begun a failover goes on with it, also when the primary is back.
		m, err := probe(s, "SENTINEL", "MASTER", server.SentinelMaster)
		if err != nil {
			return "a sentinel does not answer"
		}
		about, err := m.AsStrMap()
		if err != nil || about["flags"] != "master" {
			return "a sentinel finds the primary " + about["flags"]
		}
		known := about["ip"] + ":" + about["port"]
		if !slices.ContainsFunc(v.primaries(), func(n *server.Node) bool { return n.Addr == known }) {
			return "a sentinel knows another primary"
		}
	}
	return ""
}
