// SPDX-License-Identifier: Apache-2.0

package redis

// StartMigration begins to move a slot to another primary: from now on keys that are not at the
// source are asked for at the target (ASK).
func (w *World) StartMigration(slot int, to *Node) {
	from := w.slotOwner(slot)
	to.mu.Lock()
	to.importing[slot] = from
	to.mu.Unlock()
	from.mu.Lock()
	from.migrating[slot] = to
	from.mu.Unlock()
}

func (w *World) slotOwner(slot int) *Node {
	w.clusterMu.Lock()
	defer w.clusterMu.Unlock()
	return w.topo.shards[w.topo.slots[slot]].primary
}

// MoveKeys moves the keys of a slot that migrates. It is the one place that holds two nodes' mutexes:
// MIGRATE is atomic.
func (w *World) MoveKeys(slot int) {
	from := w.slotOwner(slot)
	from.mu.Lock()
	to := from.migrating[slot]
	from.mu.Unlock()
	if to == nil {
		return
	}
	first, second := from, to
	if second.index < first.index {
		first, second = second, first
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	second.mu.Lock()
	defer second.mu.Unlock()
	from.begin()
	to.begin()
	for _, key := range sortedKeys(from.keys) {
		if slotOf(key) == slot && from.lookup(key) != nil {
			from.moveKey(key, to)
		}
	}
	from.commit()
	to.commit()
}

func (n *Node) moveKey(key string, to *Node) {
	e := n.keys[key].clone()
	to.edit(key)
	to.keys[key] = e
	to.setEnd(e, e.end)
	n.edit(key)
	delete(n.keys, key)
}

// FinishMigration gives the slot to the target (SETSLOT NODE): source and target know at once, the
// others by gossip. Subscribers of the slot's shard channels at the source get sunsubscribe.
func (w *World) FinishMigration(slot int) {
	w.clusterMu.Lock()
	defer w.clusterMu.Unlock()
	from := w.topo.shards[w.topo.slots[slot]].primary
	from.mu.Lock()
	to := from.migrating[slot]
	delete(from.migrating, slot)
	from.mu.Unlock()
	if to == nil {
		return
	}
	to.mu.Lock()
	delete(to.importing, slot)
	to.mu.Unlock()
	t := w.topo.clone()
	t.slots[slot] = int16(t.shardOf(to))
	w.announce(t, to, from)
}

// Migrate moves a whole slot at once.
func (w *World) Migrate(slot int, to *Node) {
	w.StartMigration(slot, to)
	w.MoveKeys(slot)
	w.FinishMigration(slot)
}

// Failover says how a replica takes over.
type Failover struct {
	// Force takes over without asking the primary: what was not replicated is lost, and the primary
	// goes on until it hears. Without it the primary stops first and the replica catches up.
	Force bool
	// Isolated keeps a primary that was deposed by force from hearing of it, until Node.Isolate(false).
	Isolated bool
}

// Failover makes a replica of a Cluster the primary.
func (w *World) Failover(to *Node, f Failover) {
	w.clusterMu.Lock()
	defer w.clusterMu.Unlock()
	old := to.Primary()
	if old == nil {
		panic("redis: " + to.addr + " is no replica")
	}
	others := old.stepDown(to, f.Force)
	for _, r := range others {
		if !f.Force { // a partial resynchronisation goes on from where the replica is: nothing is missing
			r.catchUp()
		}
	}
	w.Promote(to)
	for _, r := range without(others, to) {
		w.follow(r, to, f.Force)
	}
	if f.Force && f.Isolated {
		old.mu.Lock()
		old.isolated = true
		old.mu.Unlock()
	}
	w.announceFailover(old, to, f)
}

// stepDown takes the replicas from a primary. If it is asked, it writes no more from here on.
func (n *Node) stepDown(to *Node, force bool) []*Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	others := n.replicas
	n.replicas = nil
	if !force {
		n.primary = to
		n.cond.Broadcast()
	}
	return others
}

// catchUp applies all that is on its way to a replica.
func (n *Node) catchUp() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.up {
		n.apply(n.feed.due(true))
	}
}

func (w *World) announceFailover(old, to *Node, f Failover) {
	t := w.topo.clone()
	s := &t.shards[t.shardOf(to)]
	s.primary, s.replicas = to, append(without(s.replicas, to), old)
	if f.Force {
		w.announce(t, to)
		return
	}
	w.follow(old, to, false)
	w.announce(t, to, old)
}
