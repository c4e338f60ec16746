// SPDX-License-Identifier: Apache-2.0

// Package several tests the client on several independent servers, in virtual time.
package several

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/client/quorum"
	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
)

// several is servers that know nothing of each other.
type several struct {
	*testing.T
	world *redis.World
	nodes []*redis.Node
	hosts int // of clients
}

const lease = 10 * time.Second

// on runs a test on servers whose memory is old enough.
func on(t *testing.T, servers int, test func(b *several)) {
	t.Helper()
	opt := redis.Options{}
	opt.Hooks.Write = func(w redis.Write) {
		if w.After != nil && w.End == 0 {
			t.Errorf("a key without a TTL: %s %v", w.Key, w.After)
		}
	}
	bed.In(t, opt, func(t *testing.T, w *redis.World) {
		b := &several{T: t, world: w}
		for i := range servers {
			n := w.Node(fmt.Sprintf("s%d:6379", i))
			b.load(n)
			b.nodes = append(b.nodes, n)
		}
		time.Sleep(lease + time.Second)
		test(b)
	})
}

func (b *several) load(n *redis.Node) {
	b.Helper()
	bed.Load(b.T, n)
	n.Do("FCALL", functions.Memory, "0")
}

func (b *several) options(host string) (all []rueidis.ClientOption) {
	for _, n := range b.nodes {
		all = append(all, bed.Single(b.world, host, n.Addr()))
	}
	return all
}

// client opens one on a host of its own: h1, h2 and so on.
func (b *several) client(cfg client.Config) *client.Client {
	b.Helper()
	if cfg.Lease == 0 {
		cfg.Lease = lease
	}
	b.hosts++
	return bed.Closing(b.T, bed.Must(quorum.Open(b.options(fmt.Sprintf("h%d", b.hosts)), bed.Quiet(cfg))))
}

// two opens two clients.
func (b *several) two() (one, other *client.Client) {
	return b.client(client.Config{}), b.client(client.Config{})
}

// hold takes a lock and waits until all servers have voted.
func (b *several) hold(c *client.Client, name string, opts ...client.Option) *client.Lock {
	b.Helper()
	l, err := c.Acquire(b.Context(), name, opts...)
	require.NoError(b, err)
	time.Sleep(100 * time.Millisecond)
	return l
}

func (b *several) release(l *client.Lock) {
	b.Helper()
	require.NoError(b, l.Release(b.Context()))
}

// votes is how many servers have the lock for an owner.
func (b *several) votes(name, owner string) (n int) {
	for _, node := range b.nodes {
		if f := node.Hash("lock:" + name); f != nil && f["owner"] == owner && f["until"] != "0" {
			n++
		}
	}
	return n
}

// from returns the server whose vote decides about a lock, as the client chooses it, or one after that.
func (b *several) from(name string, after int) *redis.Node {
	return b.nodes[(int(cluster.Slot("lock:"+name))+after)%len(b.nodes)]
}

// ways are how a server can be lost.
var ways = map[string]func(b *several, n *redis.Node){
	"killed":  func(_ *several, n *redis.Node) { n.Kill() },
	"paused":  func(_ *several, n *redis.Node) { n.Pause() },
	"stalled": func(b *several, n *redis.Node) { b.world.Stall(redis.Path{Node: n}, redis.Both) },
	"mute":    func(b *several, n *redis.Node) { b.world.Stall(redis.Path{Node: n}, redis.ToClient) },
	"busy":    func(_ *several, n *redis.Node) { n.Set(redis.Busy, true) },
	"loading": func(_ *several, n *redis.Node) { n.Set(redis.Loading, true) },
}
