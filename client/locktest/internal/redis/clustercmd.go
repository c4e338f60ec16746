// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
	"strings"
)

func init() {
	register(
		&spec{"CLUSTER|SLOTS", 2, always, 0, inCluster(clusterSlots)},
		&spec{"CLUSTER|SHARDS", 2, always, 0, inCluster(clusterShards)},
		&spec{"CLUSTER|NODES", 2, always, 0, inCluster(clusterNodes)},
		&spec{"ASKING", 1, noScript | always, 0, inCluster(func(c *call) any { c.s.asking = true; return Status("OK") })},
		&spec{"READONLY", 1, noScript | always, 0, inCluster(func(c *call) any { c.s.readonly = true; return Status("OK") })},
	)
}

func inCluster(run func(*call) any) func(*call) any {
	return func(c *call) any {
		if c.n.topo == nil {
			return Error("ERR This instance has cluster support disabled")
		}
		return run(c)
	}
}

func clusterSlots(c *call) any {
	out := []any{}
	c.n.topo.ranges(func(from, to int, s shard) {
		item := []any{from, to}
		for _, n := range s.nodes() {
			host, port := n.hostPort()
			item = append(item, []any{host, port, n.id(), []any{}})
		}
		out = append(out, item)
	})
	return out
}

func clusterShards(c *call) any {
	out := []any{}
	for _, s := range c.n.topo.shards {
		ranges, nodes, role := []any{}, []any{}, "master"
		c.n.topo.ranges(func(from, to int, owner shard) {
			if owner.primary == s.primary {
				ranges = append(ranges, from, to)
			}
		})
		for _, n := range s.nodes() {
			host, port := n.hostPort()
			nodes = append(nodes, pairs{"id", n.id(), "port", port, "ip", host, "endpoint", host, "role", role,
				"health", "online"})
			role = "replica"
		}
		out = append(out, pairs{"slots", ranges, "nodes", nodes})
	}
	return out
}

func clusterNodes(c *call) any {
	var b strings.Builder
	for _, s := range c.n.topo.shards {
		flags, of, owns := "master", "-", ""
		c.n.topo.ranges(func(from, to int, owner shard) {
			if owner.primary == s.primary {
				owns += fmt.Sprintf(" %d-%d", from, to)
			}
		})
		for _, n := range s.nodes() {
			if n == c.n {
				flags = "myself," + flags
			}
			host, port := n.hostPort()
			fmt.Fprintf(&b, "%s %s:%d@1%d %s %s 0 0 %d connected%s\n", n.id(), host, port, port, flags, of, c.n.topo.epoch, owns)
			flags, of, owns = "slave", s.primary.id(), ""
		}
	}
	return b.String()
}
