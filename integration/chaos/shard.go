package main

import (
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
)

// shard is a primary with its replicas, as they are now.
type shard struct {
	primary  *server.Node
	replicas []*server.Node
}

// shards are those of the deployment, in the order of its nodes. A Cluster's replica stays with
// the primary that it was started for.
func (v *servers) shards() (list []shard) {
	groups := [][]*server.Node{v.nodes}
	if v.deployment.Kind == server.KindCluster {
		half := len(v.nodes) / 2
		groups = nil
		for i := range half {
			groups = append(groups, []*server.Node{v.nodes[i], v.nodes[i+half]})
		}
	}
	roles := v.roles()
	for _, g := range groups {
		var s shard
		for _, n := range g {
			if roles[n.Addr] == "master" {
				s.primary = n
			} else {
				s.replicas = append(s.replicas, n)
			}
		}
		if s.primary != nil {
			list = append(list, s)
		}
	}
	return list
}

// killAhead kills a primary whose replicas have not heard of the last moment: what it granted then
// is lost. A replica that is paused would read what is in its socket, so the link is cut.
func (v *servers) killAhead(s shard, ahead time.Duration, rest func(time.Duration)) error {
	var errs []error
	for _, r := range s.replicas {
		errs = append(errs, r.Pause())
	}
	errs = append(errs, tell(s.primary.Addr, "CLIENT", "KILL", "TYPE", "replica"))
	rest(ahead)
	errs = append(errs, s.primary.Kill())
	for _, r := range s.replicas {
		errs = append(errs, r.Resume())
	}
	errs = append(errs, v.succeeded(s), s.primary.Restart())
	return errors.Join(errs...)
}

// succeeded blocks until a replica of the shard is the primary.
func (v *servers) succeeded(s shard) error {
	done := until(40*time.Second, func() bool {
		return slices.ContainsFunc(s.replicas, func(n *server.Node) bool { return roleOf(n.Addr) == "master" })
	})
	if !done {
		return errors.New("no replica has become the primary of " + s.primary.Addr)
	}
	return nil
}
