package redis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

func init() {
	register(
		&spec{"SENTINEL|GET-MASTER-ADDR-BY-NAME", 3, noScript | always, 0, bySentinel(func(c *call) any {
			host, port := c.n.world.master.primary.Load().hostPort()
			return []any{host, strconv.Itoa(port)}
		})},
		&spec{"SENTINEL|SENTINELS", 3, noScript | always, 0, bySentinel(func(c *call) any {
			return described("sentinel", without(c.n.world.sentinels, c.n))
		})},
		&spec{"SENTINEL|REPLICAS", 3, noScript | always, 0, bySentinel(func(c *call) any {
			return described("slave", *c.n.world.master.replicas.Load())
		})},
	)
}

func described(flags string, nodes []*Node) any {
	out := []any{}
	for _, n := range nodes {
		host, port := n.hostPort()
		out = append(out, pairs{"name", n.addr, "ip", host, "port", strconv.Itoa(port), "flags", flags})
	}
	return out
}

// words is the address as Sentinels write it.
func (n *Node) words() string { return strings.Replace(n.addr, ":", " ", 1) }

// sentinelSet is the one primary that the sentinels watch.
type sentinelSet struct {
	name     string
	primary  atomic.Pointer[Node]
	replicas atomic.Pointer[[]*Node]
}

func bySentinel(run func(*call) any) func(*call) any {
	return func(c *call) any {
		if !c.n.sentinel {
			return Error("ERR unknown command 'SENTINEL'")
		}
		if c.args[0] != c.n.world.master.name {
			return Error("ERR No such master with that name")
		}
		return run(c)
	}
}

// Sentinels starts sentinels at these addresses that watch a primary under a name. A World has one
// such set.
func (w *World) Sentinels(name string, primary *Node, addrs ...string) []*Node {
	set := &sentinelSet{name: name}
	set.primary.Store(primary)
	replicas := primary.following()
	set.replicas.Store(&replicas)
	w.master = set
	for _, a := range addrs {
		n := w.Node(a)
		n.mu.Lock()
		n.sentinel = true
		n.mu.Unlock()
		w.sentinels = append(w.sentinels, n)
	}
	return w.sentinels
}

func (n *Node) following() []*Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.replicas)
}

// switchPrimary is the end of a failover without a Cluster: the sentinels tell, and reconfigure the
// old primary.
func (w *World) switchPrimary(old, to *Node, f Failover) {
	if !f.Force {
		w.follow(old, to, false)
		old.KillClients()
	} else if !f.Isolated {
		time.AfterFunc(gossip+w.jitter(gossip), func() { w.Depose(old, to) })
	}
	if w.master == nil {
		return
	}
	w.master.primary.Store(to)
	replicas := append(to.following(), old)
	w.master.replicas.Store(&replicas)
	for _, s := range w.sentinels {
		s.say("+switch-master", fmt.Sprintf("%s %s %s", w.master.name, old.words(), to.words()))
	}
}

// Depose makes a primary that was deposed by force follow its successor, as a Sentinel does: its
// clients are disconnected.
func (w *World) Depose(old, to *Node) {
	old.mu.Lock()
	up := old.up
	old.isolated = false
	old.mu.Unlock()
	if !up {
		return
	}
	w.follow(old, to, true)
	old.KillClients()
	for _, s := range w.sentinels {
		s.say("+slave", fmt.Sprintf("slave %s %s @ %s %s", old.addr, old.words(), w.master.name, to.words()))
	}
}

func (n *Node) say(channel, message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.up {
		n.deliver(ordinary, channel, message, false)
	}
}
