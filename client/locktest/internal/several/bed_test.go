// Package several tests the client on several independent servers, in virtual time.
package several

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/client/quorum"
	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
)

// bed is servers that know nothing of each other.
type bed struct {
	*testing.T
	world   *redis.World
	nodes   []*redis.Node
	clients []*client.Client
}

const lease = 10 * time.Second

// on runs a test on servers whose memory is old enough. It closes the clients that the test opened.
func on(t *testing.T, servers int, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opt := redis.Options{Latency: 200 * time.Microsecond}
		opt.Unmodelled = func(_, text string) { t.Errorf("not modelled: %s", text) }
		opt.Hooks.Write = func(w redis.Write) {
			if w.After != nil && w.End == 0 {
				t.Errorf("a key without a TTL: %s %v", w.Key, w.After)
			}
		}
		b := &bed{T: t, world: redis.New(opt)}
		for i := range servers {
			n := b.world.Node(fmt.Sprintf("s%d:6379", i))
			b.load(n)
			b.nodes = append(b.nodes, n)
		}
		time.Sleep(lease + time.Second)
		test(b)
		for _, c := range b.clients {
			c.Close()
		}
		time.Sleep(2 * time.Minute)
		b.world.Close()
		time.Sleep(10 * time.Second)
	})
}

func (b *bed) load(n *redis.Node) {
	b.Helper()
	require.Equal(b, functions.Library, n.Do("FUNCTION", "LOAD", "REPLACE", functions.Source))
	n.Do("FCALL", functions.Memory, "0")
}

func (b *bed) options(host string) (all []rueidis.ClientOption) {
	for _, n := range b.nodes {
		all = append(all, rueidis.ClientOption{InitAddress: []string{n.Addr()}, ForceSingleClient: true, MaxFlushDelay: -1,
			DialCtxFn: b.world.Host(host).Dial})
	}
	return all
}

// client opens one on a host of its own: h1, h2 and so on.
func (b *bed) client(cfg client.Config) *client.Client {
	b.Helper()
	if cfg.Lease == 0 {
		cfg.Lease = lease
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	c, err := quorum.Open(b.options(fmt.Sprintf("h%d", len(b.clients)+1)), cfg)
	require.NoError(b, err)
	b.clients = append(b.clients, c)
	return c
}

// two opens two clients.
func (b *bed) two() (one, other *client.Client) {
	return b.client(client.Config{}), b.client(client.Config{})
}

// hold takes a lock and waits until all servers have voted.
func (b *bed) hold(c *client.Client, name string, opts ...client.Option) *client.Lock {
	b.Helper()
	l, err := c.Acquire(b.Context(), name, opts...)
	require.NoError(b, err)
	time.Sleep(100 * time.Millisecond)
	return l
}

func (b *bed) release(l *client.Lock) {
	b.Helper()
	require.NoError(b, l.Release(b.Context()))
}

// waits lets a client wait for a lock, and returns it. An outage does not end that.
func (b *bed) waits(c *client.Client, name string) <-chan *client.Lock {
	got := make(chan *client.Lock, 1)
	go func() {
		defer close(got)
		for b.Context().Err() == nil {
			l, err := c.Acquire(b.Context(), name)
			if err == nil {
				got <- l
				return
			}
			if !errors.Is(err, client.ErrUnreachable) && b.Context().Err() == nil {
				b.Errorf("who waits is told: %v", err)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return got
}

// votes is how many servers have the lock for an owner.
func (b *bed) votes(name, owner string) (n int) {
	for _, node := range b.nodes {
		if f := node.Hash("lock:" + name); f != nil && f["owner"] == owner && f["until"] != "0" {
			n++
		}
	}
	return n
}

// from returns the server whose vote decides about a lock, as the client chooses it, or one after that.
func (b *bed) from(name string, after int) *redis.Node {
	return b.nodes[(int(cluster.Slot("lock:"+name))+after)%len(b.nodes)]
}

// kinds are the kinds of errors that err is of: the contract says exactly one.
func kinds(err error) (out []string) {
	for name, k := range map[string]error{"busy": client.ErrBusy, "timeout": client.ErrTimeout, "unreachable": client.ErrUnreachable,
		"closed": client.ErrClosed, "lost": client.ErrLost, "invalid": client.ErrInvalid, "canceled": context.Canceled} {
		if errors.Is(err, k) {
			out = append(out, name)
		}
	}
	return out
}

// ways are how a server can be lost.
var ways = map[string]func(b *bed, n *redis.Node){
	"killed":  func(_ *bed, n *redis.Node) { n.Kill() },
	"paused":  func(_ *bed, n *redis.Node) { n.Pause() },
	"stalled": func(b *bed, n *redis.Node) { b.world.Stall(redis.Path{Node: n}, redis.Both) },
	"mute":    func(b *bed, n *redis.Node) { b.world.Stall(redis.Path{Node: n}, redis.ToClient) },
	"busy":    func(_ *bed, n *redis.Node) { n.Set(redis.Busy, true) },
	"loading": func(_ *bed, n *redis.Node) { n.Set(redis.Loading, true) },
}
