// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
)

// isCut reports whether a kind is of the network between servers.
func (k kind) isCut() bool { return strings.HasPrefix(string(k), "cut.") }

// In a Cluster another one takes over after some three or four seconds, under Sentinel after two.
const shortCut, longCut = 300 * time.Millisecond, 8 * time.Second

// cut strikes the network between servers, mostly that of the primary of a lock.
func (l *lane) cut(k kind) error {
	v := l.servers
	d := shortCut + time.Duration(l.random.Float64()*float64(longCut-shortCut))
	lock := lockNames[l.random.IntN(len(lockNames))]
	which, way := l.random.Float64(), l.random.IntN(4)
	others, hangUp := l.random.Perm(len(v.mesh.nodes)), l.random.IntN(2) == 0

	one, replicas := v.mesh.nodes[others[0]], []*server.Node(nil)
	if which < 0.7 || k == sentinelSide || k == cutHeir {
		s, err := v.shardOf(lock)
		if err != nil {
			return l.strike(fault{Kind: k, Target: lock}, func() error { return err })
		}
		one, replicas = s.primary, s.replicas
	}
	paths, target := v.mesh.around(k, one), one.Addr
	switch k {
	case cutHeir:
		for _, r := range replicas {
			paths = append(paths, path{r, one})
		}
	case cutPair:
		other := v.mesh.nodes[others[0]]
		if other == one {
			other = v.mesh.nodes[others[1]]
		}
		paths, target = pair(one, other, way)
	}
	var wires proxies
	if k == sentinelSide {
		wires = l.crew.beyond(one.Addr)
	}
	f := fault{Kind: k, Target: target, Detail: fmt.Sprintf("for %v", d)}
	if hangUp {
		f.Detail += ", then connections end"
	}
	return l.strike(f, func() error {
		if planned(k) {
			v.failovers.Add(1)
			defer v.failovers.Add(1)
		}
		v.mesh.silence(paths)
		wires.each((*server.Proxy).Stall)
		l.rest(d)
		v.mesh.heal(paths, hangUp)
		wires.resume(hangUp)
		return v.whole()
	})
}

// around are the paths that a kind cuts around a server.
func (m *mesh) around(k kind, one *server.Node) (paths []path) {
	for _, other := range m.nodes {
		if other == one {
			continue
		}
		if k != cutMute && k != cutHeir && k != sentinelMute {
			paths = append(paths, path{other, one})
		}
		if k != cutDeaf && k != sentinelDeaf {
			paths = append(paths, path{one, other})
		}
	}
	return paths
}

// pair are the paths between two servers: both of them, or one in every other case.
func pair(one, other *server.Node, way int) (paths []path, target string) {
	if way == 1 {
		one, other = other, one
	}
	there := path{one, other}
	if way < 2 {
		return []path{there}, one.Addr + " to " + other.Addr
	}
	return []path{there, there.back()}, one.Addr + " and " + other.Addr
}

// shardOf is the one that has a lock, or any whose primary answers.
func (v *servers) shardOf(lock string) (shard, error) {
	list := v.shards()
	if len(list) == 0 {
		return shard{}, errors.New("no primary answers")
	}
	if v.deployment.Kind != server.KindCluster {
		return list[0], nil
	}
	i := slices.IndexFunc(list, func(s shard) bool {
		owned, err := owns(s.primary, lock)
		return err == nil && owned
	})
	return list[max(i, 0)], nil
}

// beyond are the ways of all clients to all servers but one.
func (c *crew) beyond(addr string) (list proxies) {
	for _, p := range c.places {
		for i, n := range p.wires.nodes {
			if n.Addr != addr {
				list = append(list, p.wires.all[i])
			}
		}
	}
	return list
}
