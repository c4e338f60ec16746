// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/cluster"
)

const slots = 16384

func slotOf(key string) int { return int(cluster.Slot(key)) }

// topology is who serves which slots. It is never changed: a change makes a new one, of a higher
// epoch.
type topology struct {
	epoch  int
	slots  [slots]int16 // the shard
	shards []shard
}

type shard struct {
	primary  *Node
	replicas []*Node
}

// nodes are the primary and then the others.
func (s shard) nodes() []*Node { return append([]*Node{s.primary}, s.replicas...) }

func (t *topology) clone() *topology {
	c := &topology{epoch: t.epoch + 1, slots: t.slots, shards: slices.Clone(t.shards)}
	for i := range c.shards {
		c.shards[i].replicas = slices.Clone(c.shards[i].replicas)
	}
	return c
}

func (t *topology) shardOf(n *Node) int {
	return slices.IndexFunc(t.shards, func(s shard) bool { return s.primary == n || slices.Contains(s.replicas, n) })
}

// clusterState is what a node of a Cluster believes. It is guarded by the node's mutex.
type clusterState struct {
	topo      *topology // nil: no Cluster
	migrating map[int]*Node
	importing map[int]*Node
	isolated  bool // it hears no news
	busLast   map[*Node]time.Time
}

// Cluster starts primaries with so many replicas each at 10.0.0.1:6379, 10.0.0.2:6379 and so on,
// primaries first. The slots are shared evenly.
func (w *World) Cluster(primaries, replicas int) []*Node {
	t := &topology{epoch: 1}
	var all []*Node
	for i := range primaries {
		all = append(all, w.Node(fmt.Sprintf("10.0.0.%d:6379", i+1)))
		t.shards = append(t.shards, shard{primary: all[i]})
	}
	for slot := range t.slots {
		t.slots[slot] = int16(slot * primaries / slots)
	}
	for r := range replicas {
		for i := range primaries {
			n := w.Replica(fmt.Sprintf("10.0.0.%d:6379", (r+1)*primaries+i+1), all[i])
			t.shards[i].replicas = append(t.shards[i].replicas, n)
			all = append(all, n)
		}
	}
	for _, n := range all {
		n.mu.Lock()
		n.topo, n.migrating, n.importing, n.busLast = t, map[int]*Node{}, map[int]*Node{}, map[*Node]time.Time{}
		n.mu.Unlock()
	}
	w.clusterMu.Lock()
	w.topo = t
	w.clusterMu.Unlock()
	return all
}

// Owner returns the primary of a key, by the newest topology.
func (w *World) Owner(key string) *Node {
	w.clusterMu.Lock()
	defer w.clusterMu.Unlock()
	return w.topo.shards[w.topo.slots[slotOf(key)]].primary
}

// Isolate keeps the news of a changed topology from a node, as a cut cluster bus does. Ending it
// tells the newest.
func (n *Node) Isolate(on bool) {
	n.mu.Lock()
	n.isolated = on
	n.mu.Unlock()
	if !on {
		n.world.clusterMu.Lock()
		t := n.world.topo
		n.world.clusterMu.Unlock()
		n.hear(t)
	}
}

// announce makes a topology the newest. Those named hear of it now, all others by gossip. It is
// called with clusterMu held.
func (w *World) announce(t *topology, now ...*Node) {
	w.topo = t
	for _, n := range now {
		n.hear(t)
	}
	for _, n := range w.Nodes() {
		if !slices.Contains(now, n) {
			time.AfterFunc(gossip+w.jitter(gossip), func() { n.hear(t) })
		}
	}
}

// hear is how a node learns of a topology: it ends the subscriptions of slots that it has lost, and
// as a primary that was deposed it follows its successor.
func (n *Node) hear(t *topology) {
	n.mu.Lock()
	if n.topo == nil || n.topo.epoch >= t.epoch || n.isolated || !n.up {
		n.mu.Unlock()
		return
	}
	before := n.topo
	n.topo = t
	at := t.shardOf(n)
	n.dropShardChannels(func(slot int) bool {
		was, is := before.shards[before.slots[slot]], t.shards[t.slots[slot]]
		lost := was.primary == n && is.primary != n
		gained := n.world.opt.Flavour != Redis70 && was.primary != n && is.primary == n
		return lost || gained
	})
	var follow *Node
	if at >= 0 && t.shards[at].primary != n && n.primary != t.shards[at].primary {
		follow = t.shards[at].primary
	}
	n.mu.Unlock()
	if follow != nil {
		n.world.follow(n, follow, true)
	}
}

// serves reports whether this node is the primary of a slot, or a replica of it.
func (n *Node) serves(slot int) bool {
	return n.belongs(slot) || n.importing[slot] != nil
}

// belongs reports whether the slot is of this node's shard.
func (n *Node) belongs(slot int) bool { return int(n.topo.slots[slot]) == n.topo.shardOf(n) }

// redirect is what a node of a Cluster answers about keys that are elsewhere.
func (n *Node) redirect(s *session, sp *spec, args []string) Error {
	if n.topo == nil || s.internal {
		return ""
	}
	keys, names := sp.keysOf(args), sp.slotted(args)
	if len(names) == 0 {
		return ""
	}
	slot := slotOf(names[0])
	for _, name := range names[1:] {
		if slotOf(name) != slot {
			return "CROSSSLOT Keys in request don't hash to the same slot"
		}
	}
	if n.conditions[ClusterDown] {
		return "CLUSTERDOWN The cluster is down"
	}
	owner := n.topo.shards[n.topo.slots[slot]].primary
	mayRead := s.readonly || sp.flags&sharded != 0
	switch {
	case owner == n:
		return n.whileMigrating(slot, keys)
	case n.importing[slot] != nil && s.asking:
		return ""
	case mayRead && n.effectiveFlags(sp, args)&write == 0 && n.belongs(slot):
		return ""
	}
	return Error(fmt.Sprintf("MOVED %d %s", slot, owner.addr))
}

// whileMigrating answers for a slot of which some keys may have moved already.
func (n *Node) whileMigrating(slot int, keys []string) Error {
	to := n.migrating[slot]
	switch {
	case to == nil || len(keys) == 0:
		return ""
	case len(keys) > 1:
		return n.world.unmodelled(n, "several keys of a slot that migrates")
	case n.keys[keys[0]] != nil:
		return ""
	}
	return Error(fmt.Sprintf("ASK %d %s", slot, to.addr))
}

// forward sends a message over the cluster's bus, to the shard.
func (n *Node) forward(channel, message string) {
	for _, m := range n.topo.shards[n.topo.shardOf(n)].nodes() {
		if m == n {
			continue
		}
		at := time.Now().Add(lag/2 + time.Duration(n.index%97)*101 + time.Duration(m.index%97+1)*11)
		if last := n.busLast[m]; !at.After(last) {
			at = last.Add(1)
		}
		n.busLast[m] = at
		time.AfterFunc(time.Until(at), func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.up && !m.isolated {
				m.deliver(channel, message, true)
			}
		})
	}
}

// id is the node's name in the Cluster.
func (n *Node) id() string { return fmt.Sprintf("%040x", n.index+1) }

// ranges calls visit for every run of slots of one shard.
func (t *topology) ranges(visit func(from, to int, s shard)) {
	for from := 0; from < slots; {
		to := from
		for to+1 < slots && t.slots[to+1] == t.slots[from] {
			to++
		}
		visit(from, to, t.shards[t.slots[from]])
		from = to + 1
	}
}
