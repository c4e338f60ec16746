// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

func init() {
	register(
		&spec{"WAIT", 3, noScript, 0, wait},
		&spec{"ROLE", 1, noScript | always, 0, role},
	)
}

// replication is a node's part of it. It is guarded by the node's mutex.
type replication struct {
	primary  *Node   // nil: this node is one
	replicas []*Node // that follow this node
	acked    map[*Node]int64
	offset   int64 // how many units this history has
	replID   string
	feed     *feed
}

// feed is what is on its way to a replica. Its mutex is a leaf.
type feed struct {
	node *Node

	mu      sync.Mutex
	queue   []shipment
	stopped bool
	timer   *time.Timer
	last    time.Time
}

// shipment is a unit, or a full synchronisation.
type shipment struct {
	at     time.Time
	from   *Node
	offset int64
	data   *image
	full   bool
	replID string
}

func (f *feed) send(p shipment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p.at = time.Now().Add(lag + time.Duration(f.node.index%97+1)*7)
	if !p.at.After(f.last) {
		p.at = f.last.Add(1)
	}
	f.last = p.at
	f.queue = append(f.queue, p)
	if len(f.queue) == 1 {
		f.arm()
	}
}

func (f *feed) arm() {
	if f.stopped || len(f.queue) == 0 {
		return
	}
	d := time.Until(f.queue[0].at)
	if f.timer == nil {
		f.timer = time.AfterFunc(d, f.node.drain)
	} else {
		f.timer.Reset(d)
	}
}

// due takes what has arrived, or all of it.
func (f *feed) due(all bool) []shipment {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped && !all {
		return nil
	}
	now, i := time.Now(), 0
	for i < len(f.queue) && (all || !f.queue[i].at.After(now)) {
		i++
	}
	out := f.queue[:i:i]
	f.queue = f.queue[i:]
	f.arm()
	return out
}

func (f *feed) stop(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = on
	if on && f.timer != nil {
		f.timer.Stop()
	}
	f.arm()
}

func (f *feed) drop() { f.mu.Lock(); f.queue = nil; f.mu.Unlock() }

// StopReplication keeps from this replica what its primary writes from now on, until
// StartReplication.
func (n *Node) StopReplication() { n.feed.stop(true) }

// StartReplication delivers what was kept.
func (n *Node) StartReplication() { n.feed.stop(false) }

// Primary returns whom the node follows, nil if it is a primary.
func (n *Node) Primary() *Node { n.mu.Lock(); defer n.mu.Unlock(); return n.primary }

// Offset returns how many units of its history the node has.
func (n *Node) Offset() int64 { n.mu.Lock(); defer n.mu.Unlock(); return n.offset }

// propagate sends a unit to the replicas.
func (n *Node) propagate(u *unit) {
	n.offset++
	if len(n.replicas) == 0 {
		return
	}
	s := shipment{from: n, offset: n.offset, data: n.copied(slices.Values(u.keys), slices.Values(u.libs))}
	for _, r := range n.replicas {
		r.feed.send(s)
	}
}

// drain applies what has arrived from the primary, and acknowledges it.
func (n *Node) drain() {
	n.mu.Lock()
	from := n.primary
	if n.paused || !n.up || from == nil {
		n.mu.Unlock()
		return
	}
	n.apply(n.feed.due(false))
	offset := n.offset
	n.mu.Unlock()
	from.mu.Lock()
	defer from.mu.Unlock()
	from.acked[n] = offset
	from.cond.Broadcast()
}

func (n *Node) apply(shipments []shipment) {
	for _, p := range shipments {
		if p.from != n.primary {
			continue
		}
		n.offset = p.offset
		if p.full {
			n.replID = p.replID
			n.invalidateAll()
			n.restore(p.data)
			continue
		}
		n.begin()
		n.take(p.data)
		n.commit()
	}
}

// Replica starts a node that follows primary, from a full synchronisation.
func (w *World) Replica(addr string, primary *Node) *Node {
	r := w.Node(addr)
	w.follow(r, primary, true)
	return r
}

// follow makes a node a replica of another (REPLICAOF). Its connections stay, those of subscribers
// too. With full it loses its data and its libraries' memory; without, it keeps what it has and
// hears of what is new (a partial resynchronisation).
func (w *World) follow(r, primary *Node, full bool) {
	w.detach(r)
	r.mu.Lock()
	r.feed.drop()
	r.primary = primary
	r.armSweep()
	r.cond.Broadcast()
	r.mu.Unlock()
	primary.mu.Lock()
	defer primary.mu.Unlock()
	if !primary.up {
		return
	}
	primary.replicas = append(primary.replicas, r)
	p := shipment{from: primary, offset: primary.offset, replID: primary.replID, full: full, data: &image{}}
	if full {
		p.data = primary.snapshot()
	}
	r.feed.send(p)
}

// detach makes a node's primary forget it.
func (w *World) detach(r *Node) {
	r.mu.Lock()
	primary := r.primary
	r.mu.Unlock()
	if primary == nil {
		return
	}
	primary.mu.Lock()
	defer primary.mu.Unlock()
	primary.replicas = without(primary.replicas, r)
	delete(primary.acked, r)
}

// Promote makes a node a primary with a history of its own (REPLICAOF NO ONE). What is on its way to
// it is lost. Its libraries keep their memory.
func (w *World) Promote(n *Node) {
	w.detach(n)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.feed.drop()
	n.primary = nil
	n.replID = n.hexID()
	n.acked = map[*Node]int64{}
	n.armSweep()
}

// ackedBy counts the replicas that have a write.
func (n *Node) ackedBy(offset int64) int {
	count := 0
	for _, r := range n.replicas {
		if got, ok := n.acked[r]; ok && got >= offset {
			count++
		}
	}
	return count
}

func wait(c *call) any {
	replicas, err := integer(c.args[0])
	timeout, err2 := integer(c.args[1])
	switch {
	case err != nil:
		return notInteger
	case err2 != nil:
		return Error("ERR timeout is not an integer or out of range")
	case timeout < 0:
		return Error("ERR timeout is negative")
	case c.n.primary != nil:
		return Error("ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated.")
	}
	offset := c.s.offset
	if c.n.world.opt.Flavour == Redis70 { // there any command moves it
		offset = c.n.offset
	}
	return waitAcks{c.n, offset, int(replicas), time.Duration(timeout) * time.Millisecond}
}

func role(c *call) any {
	n := c.n
	if n.primary != nil {
		host, port := n.primary.hostPort()
		return []any{"slave", host, port, "connected", n.offset}
	}
	replicas := []any{}
	for _, r := range n.replicas {
		host, port := r.hostPort()
		replicas = append(replicas, []any{host, strconv.Itoa(port), strconv.FormatInt(n.acked[r], 10)})
	}
	return []any{"master", n.offset, replicas}
}

func (n *Node) infoReplication() []string {
	if n.primary == nil {
		lines := []string{"role:master", fmt.Sprint("connected_slaves:", len(n.replicas))}
		for i, r := range n.replicas {
			host, port := r.hostPort()
			lines = append(lines, fmt.Sprintf("slave%d:ip=%s,port=%d,state=online,offset=%d,lag=0", i, host, port, n.acked[r]))
		}
		return append(lines, "master_replid:"+n.replID, fmt.Sprint("master_repl_offset:", n.offset))
	}
	host, port := n.primary.hostPort()
	return strings.Split(fmt.Sprintf("role:slave\nmaster_host:%s\nmaster_port:%d\nmaster_link_status:up\nslave_repl_offset:%d\nslave_read_only:1\nmaster_replid:%s\nmaster_repl_offset:%d",
		host, port, n.offset, n.replID, n.offset), "\n")
}
