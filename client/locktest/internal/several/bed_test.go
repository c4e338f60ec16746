// Package several tests the client on several independent servers, in virtual time.
package several

import (
	"fmt"
	"hash/fnv"
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
	"github.com/holdfast-go/holdfast/functions"
)

// bed is five servers that know nothing of each other.
type bed struct {
	*testing.T
	world *redis.World
	nodes []*redis.Node
	hosts int
}

const lease = 10 * time.Second

// on runs a test on servers whose memory is old enough.
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
		b := &bed{T: t}
		b.world = redis.New(opt)
		for i := range servers {
			n := b.world.Node(fmt.Sprintf("s%d:6379", i))
			b.load(n)
			b.nodes = append(b.nodes, n)
		}
		time.Sleep(lease + time.Second)
		test(b)
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
		o := rueidis.ClientOption{InitAddress: []string{n.Addr()}, ForceSingleClient: true, MaxFlushDelay: -1, DialCtxFn: b.world.Host(host).Dial}
		all = append(all, o)
	}
	return all
}

// client opens one on a host of its own.
func (b *bed) client(cfg client.Config) *client.Client {
	b.Helper()
	b.hosts++
	if cfg.Lease == 0 {
		cfg.Lease = lease
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	c, err := quorum.Open(b.options(fmt.Sprintf("h%d", b.hosts)), cfg)
	require.NoError(b, err)
	return c
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

// line is the server that has the line of a lock, as the client chooses it.
func (b *bed) line(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte("lock:" + name))
	return int(h.Sum32() % uint32(len(b.nodes)))
}
