// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/cluster"
)

// connections finds a client for each node: one of the caller's client, or one that it dials itself
// and closes at the end.
type connections struct {
	client  rueidis.Client
	dial    func(context.Context, string) (rueidis.Client, error)
	timeout time.Duration
	also    []cluster.Node

	mu     sync.Mutex
	closed bool
	opened map[string]rueidis.Client
}

// to returns a client that sends to one node only.
func (c *connections) to(ctx context.Context, addr string) (rueidis.Client, error) {
	if node := c.client.Nodes()[addr]; node != nil {
		return node, nil
	}
	c.mu.Lock()
	node := c.opened[addr]
	c.mu.Unlock()
	if node != nil {
		return node, nil
	}
	if c.dial == nil {
		return nil, ErrNoConnection
	}
	return c.open(ctx, addr)
}

// open dials. It returns when the context ends, even if dial does not; a client that comes later is
// closed.
func (c *connections) open(ctx context.Context, addr string) (rueidis.Client, error) {
	type dialed struct {
		node rueidis.Client
		err  error
	}
	done := make(chan dialed, 1)
	go func() {
		node, err := c.dial(ctx, addr)
		if err == nil {
			node = c.keep(addr, node)
		}
		done <- dialed{node, err}
	}()
	select {
	case d := <-done:
		if d.err != nil {
			return nil, fmt.Errorf("connecting: %w", explain(d.err))
		}
		return d.node, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("connecting: %w", context.Cause(ctx))
	}
}

func (c *connections) keep(addr string, node rueidis.Client) rueidis.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.opened[addr]; known != nil || c.closed {
		node.Close()
		return known
	}
	if c.opened == nil {
		c.opened = map[string]rueidis.Client{}
	}
	c.opened[addr] = node
	return node
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, node := range c.opened {
		node.Close()
	}
}

// chain is how many replicas of replicas survey goes up to find a primary.
const chain = 8

// survey returns the nodes of the deployment. If the client is connected to a replica, survey asks
// its primary too, which knows the other replicas.
func (c *connections) survey(ctx context.Context) ([]cluster.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	nodes, err := cluster.Topology(ctx, c.client)
	if err != nil {
		return nil, explain(err)
	}
	if c.client.Mode() == rueidis.ClientModeCluster {
		return nodes, nil
	}
	asked := map[string]bool{}
	for addr := range c.client.Nodes() {
		asked[addr] = true
	}
	for range chain {
		above := unasked(nodes, asked)
		if above == "" {
			break
		}
		asked[above] = true
		node, err := c.to(ctx, above)
		if err != nil {
			continue // it stays in the list, and is reported as a primary that cannot be reached
		}
		more, err := cluster.Topology(ctx, node)
		if err == nil {
			nodes = merge(nodes, more)
		}
	}
	for _, node := range c.also {
		if !slices.ContainsFunc(nodes, func(n cluster.Node) bool { return n.Addr == node.Addr }) {
			nodes = append(nodes, node)
		}
	}
	return nodes, nil
}

// unasked returns a primary that only another node spoke of.
func unasked(nodes []cluster.Node, asked map[string]bool) string {
	for _, node := range nodes {
		if node.Role == cluster.Primary && !asked[node.Addr] {
			return node.Addr
		}
	}
	return ""
}

// merge adds what a node says about itself and others to what others said.
func merge(nodes, more []cluster.Node) []cluster.Node {
	for _, node := range more {
		if i := slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.Addr == node.Addr }); i >= 0 {
			nodes[i] = node
		} else {
			nodes = append(nodes, node)
		}
	}
	return nodes
}
