// SPDX-License-Identifier: Apache-2.0

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
	replicas nodes
}

// shards are those of the deployment, in the order of its nodes. A Cluster's replica stays with
// the primary that it was started for.
func (v *servers) shards() (list []shard) {
	list = make([]shard, 1)
	if v.deployment.Kind == server.KindCluster {
		list = make([]shard, len(v.nodes)/2)
	}
	roles := v.roles()
	for i, n := range v.nodes {
		s := &list[i%len(list)]
		if roles[n.Addr] == "master" {
			s.primary = n
		} else {
			s.replicas = append(s.replicas, n)
		}
	}
	return slices.DeleteFunc(list, func(s shard) bool { return s.primary == nil })
}

// killAhead kills a primary whose replicas have not heard of the last moment: what it granted then
// is lost. A replica that is paused would read what is in its socket, so the link is cut.
func (v *servers) killAhead(s shard, ahead time.Duration, rest func(time.Duration)) error {
	err := errors.Join(s.replicas.each((*server.Node).Pause), tell(s.primary, "CLIENT", "KILL", "TYPE", "replica"))
	rest(ahead)
	return errors.Join(err, s.primary.Kill(), s.replicas.each((*server.Node).Resume), v.succeeded(s), s.primary.Restart())
}

// succeeded blocks until a replica of the shard is the primary.
func (v *servers) succeeded(s shard) error {
	done := until(40*time.Second, func() bool {
		return slices.ContainsFunc(s.replicas, func(n *server.Node) bool { return roleOf(n) == "master" })
	})
	if !done {
		return errors.New("no replica has become the primary of " + s.primary.Addr)
	}
	return nil
}
