package fcall

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/redis/rueidis"
)

// homes are the addresses of the nodes of a Cluster that have the slots, as rueidis knows them. They
// are asked for when one is needed, and corrected by redirects.
type homes struct {
	mu sync.Mutex
	at *[cluster.Slots]string // "": not known
}

func (h *homes) of(slot uint16) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		return ""
	}
	return h.at[slot]
}

// set notes the home of the slots from first to last.
func (h *homes) set(first, last uint16, addr string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		h.at = new([cluster.Slots]string)
	}
	for slot := int(first); slot <= int(last); slot++ {
		h.at[slot] = addr
	}
}

// forget says that a node does not answer.
func (h *homes) forget(addr string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil || addr == "" {
		return
	}
	for slot, at := range h.at {
		if at == addr {
			h.at[slot] = ""
		}
	}
}

// place is where to send a call.
type place struct {
	node   rueidis.Client
	addr   string // of the node in a Cluster
	asking bool   // the slot is being imported there
}

// Home is the address of the node that has a slot in a Cluster, as far as is known; "" if it is not.
func (c *Caller) Home(slot uint16) string { return c.homes.of(slot) }

// home is where a key's slot should be. Another node will say who has it.
func (c *Caller) home(ctx context.Context, key string) place {
	if !c.Slotted {
		return place{node: c.Redis}
	}
	slot := cluster.Slot(key)
	addr := c.homes.of(slot)
	if addr == "" {
		c.learn(ctx)
		addr = c.homes.of(slot)
	}
	nodes := c.Redis.Nodes()
	if node := nodes[addr]; node != nil {
		return place{node: node, addr: addr}
	}
	for addr, node := range nodes {
		return place{node: node, addr: addr}
	}
	return place{node: c.Redis}
}

// learn asks which node has which slots.
func (c *Caller) learn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, nudge)
	defer cancel()
	nodes, err := guard(ctx, context.Background(), func(ctx context.Context) ([]cluster.Node, error) { return cluster.Topology(ctx, c.Redis) })
	if err != nil {
		return // a redirect will say
	}
	for _, n := range nodes {
		for _, slots := range n.Slots {
			c.homes.set(slots[0], slots[1], n.Addr)
		}
	}
}

// nudge bounds a question whose answer nobody needs: it makes rueidis look where the slots are.
const nudge = 300 * time.Millisecond

func (c *Caller) nudge(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, nudge)
	defer cancel()
	_, _ = c.Inspect(ctx, key)
}

// address is what a redirect names, as rueidis writes it. Without a host it is on the same one.
func address(named, from string) string {
	i := strings.LastIndexByte(named, ':')
	if i < 0 {
		return named
	}
	host, port := strings.Trim(named[:i], "[]"), named[i+1:]
	if host == "" {
		host, _, _ = net.SplitHostPort(from)
	}
	return net.JoinHostPort(host, port)
}
