// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"net"
	"strings"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/cluster"
	"github.com/redis/rueidis"
)

// homes are the addresses of the nodes of a Cluster that have the slots, as rueidis knows them; "": not
// known. They are asked for when one is needed, and after a redirect.
type homes [cluster.Slots]string

// place is where to send a call.
type place struct {
	node   rueidis.Client
	addr   string // of the node in a Cluster
	asking bool   // the slot is being imported there
}

// home is where, of nodes, a key's slot should be. Another node will say who has it. Nodes returns other
// clients each time, and places of one node are to be equal.
func (b *Backend) home(ctx context.Context, nodes map[string]rueidis.Client, key string) place {
	if b.Redis.Mode() != rueidis.ClientModeCluster {
		return place{node: b.Redis}
	}
	at := b.homes.Load()
	if at == nil {
		at = b.learn(ctx, key)
	}
	addr := at[cluster.Slot(key)]
	if node := nodes[addr]; node != nil {
		return place{node: node, addr: addr}
	}
	for addr, node := range nodes {
		return place{node: node, addr: addr}
	}
	return place{node: b.Redis}
}

// learn asks which node has which slots, once, for who wants a key: without an answer a redirect will say.
func (b *Backend) learn(ctx context.Context, key string) *homes {
	ctx, cancel := context.WithTimeout(ctx, nudge)
	defer cancel()
	var found, nodes []cluster.Node // found is not looked at if the question is left behind
	look := func(ctx context.Context, _ []fcall.Call, outcomes []fcall.Outcome) {
		found, outcomes[0].Err = cluster.Topology(ctx, b.Redis)
	}
	o := b.Pipe(ctx, b.Closing, []fcall.Call{{Verb: fcall.Inspect, Key: key}}, look)[0]
	if o.Err == nil {
		nodes = found
	}
	at := new(homes)
	for _, n := range nodes {
		for _, slots := range n.Slots {
			for slot := slots[0]; slot <= slots[1] && slot < cluster.Slots; slot++ {
				at[slot] = n.Addr
			}
		}
	}
	b.homes.Store(at)
	return at
}

// nudge asks a question whose answer nobody needs: it makes rueidis look where the slots are.
func (b *Backend) nudge(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, nudge)
	defer cancel()
	_, _ = b.Caller.Do(ctx, fcall.Call{Verb: fcall.Inspect, Key: key})
}

// follow returns where a redirect leads. A node that rueidis does not know yet makes it look.
func (b *Backend) follow(ctx context.Context, key, word, addr string, from place) place {
	if word == "MOVED" {
		b.homes.Store(nil)
	}
	addr = address(addr, from.addr)
	if node := b.Redis.Nodes()[addr]; node != nil {
		return place{node: node, addr: addr, asking: word == "ASK"}
	}
	b.nudge(ctx, key)
	pause(ctx, unknownNode)
	return b.home(ctx, b.Redis.Nodes(), key)
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
