package redis

import (
	"fmt"
	"strconv"
	"strings"
)

func init() {
	register(
		&spec{"CLUSTER|SLOTS", 2, always, 0, 0, 0, inCluster(clusterSlots)},
		&spec{"CLUSTER|SHARDS", 2, always, 0, 0, 0, inCluster(clusterShards)},
		&spec{"CLUSTER|NODES", 2, always, 0, 0, 0, inCluster(clusterNodes)},
		&spec{"CLUSTER|INFO", 2, always, 0, 0, 0, inCluster(clusterInfo)},
		&spec{"CLUSTER|MYID", 2, always, 0, 0, 0, inCluster(func(c *call) any { return c.n.id() })},
		&spec{"CLUSTER|KEYSLOT", 3, always, 0, 0, 0, func(c *call) any { return slotOf(c.args[0]) }},
		&spec{"ASKING", 1, noScript | always, 0, 0, 0, inCluster(func(c *call) any { c.s.asking = true; return Status("OK") })},
		&spec{"READONLY", 1, noScript | always, 0, 0, 0, inCluster(func(c *call) any { c.s.readonly = true; return Status("OK") })},
		&spec{"READWRITE", 1, noScript | always, 0, 0, 0, inCluster(func(c *call) any { c.s.readonly = false; return Status("OK") })},
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
		for _, n := range append([]*Node{s.primary}, s.replicas...) {
			host, port := n.hostPort()
			item = append(item, []any{host, port, n.id(), []any{}})
		}
		out = append(out, item)
	})
	return out
}

func clusterShards(c *call) any {
	out := []any{}
	for i, s := range c.n.topo.shards {
		ranges := []any{}
		c.n.topo.ranges(func(from, to int, owner shard) {
			if owner.primary == s.primary {
				ranges = append(ranges, from, to)
			}
		})
		nodes := []any{}
		for j, n := range append([]*Node{s.primary}, c.n.topo.shards[i].replicas...) {
			host, port := n.hostPort()
			role := "replica"
			if j == 0 {
				role = "master"
			}
			nodes = append(nodes, pairs{"id", n.id(), "port", port, "ip", host, "endpoint", host, "role", role, "replication-offset", 0, "health", "online"})
		}
		out = append(out, pairs{"slots", ranges, "nodes", nodes})
	}
	return out
}

func clusterNodes(c *call) any {
	ranges := map[*Node][]string{}
	c.n.topo.ranges(func(from, to int, s shard) {
		text := strconv.Itoa(from)
		if to > from {
			text += "-" + strconv.Itoa(to)
		}
		ranges[s.primary] = append(ranges[s.primary], text)
	})
	var b strings.Builder
	for _, s := range c.n.topo.shards {
		for j, n := range append([]*Node{s.primary}, s.replicas...) {
			host, port := portText(n)
			flags, of, owns := "master", "-", " "+strings.Join(ranges[n], " ")
			if j > 0 {
				flags, of, owns = "slave", s.primary.id(), ""
			}
			if n == c.n {
				flags = "myself," + flags
			}
			fmt.Fprintf(&b, "%s %s:%s@1%s %s %s 0 0 %d connected%s\n", n.id(), host, port, port, flags, of, c.n.topo.epoch, strings.TrimRight(owns, " "))
		}
	}
	return b.String()
}

func clusterInfo(c *call) any {
	state := "ok"
	if c.n.conditions[ClusterDown] {
		state = "fail"
	}
	return fmt.Sprintf("cluster_state:%s\r\ncluster_slots_assigned:%d\r\ncluster_current_epoch:%d\r\n", state, slots, c.n.topo.epoch)
}
