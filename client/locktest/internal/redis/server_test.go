// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

var ctx = context.Background()

// ownerOf returns the primary of a key, and one of the others.
func ownerOf(w *redis.World, key string, primaries []*redis.Node) (owner, other *redis.Node) {
	if owner, other = w.Owner(key), primaries[0]; owner == other {
		other = primaries[1]
	}
	return owner, other
}

// open returns a client of locks on a single server.
func open(t *testing.T, w *redis.World, host, addr string) *client.Client {
	t.Helper()
	return onServer(t, w, host, addr, client.Config{})
}

func onServer(t *testing.T, w *redis.World, host, addr string, cfg client.Config) *client.Client {
	t.Helper()
	return bed.Open(t, bed.Single(w, host, addr), cfg)
}

// A message reaches subscribers at replicas, and counts only those here.
func TestMessagesReachReplicas(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		nodes := w.Cluster(1, 1)
		p, r := nodes[0], nodes[1]
		c := dial(t, w, "h", r.Addr())
		c.send("SSUBSCRIBE", "ch")
		time.Sleep(time.Second)
		require.Equal(t, []any{"ch", int64(1)}, r.Do("PUBSUB", "SHARDNUMSUB", "ch"))
		require.Equal(t, int64(0), p.Do("SPUBLISH", "ch", "hello"))
		for _, want := range [][]any{{"ssubscribe", "ch", int64(1)}, {"smessage", "ch", "hello"}} {
			require.Equal(t, want, bed.Must(c.Receive(time.Second)))
		}
	})
}

// A clock that runs faster ends keys earlier by this world's clock, and at the time that it names
// by its own.
func TestDrift(t *testing.T) {
	for _, drift := range []float64{0.1, -0.1} {
		var gone time.Time
		expired := func(w redis.Write) {
			if w.Expired {
				gone = time.Now()
			}
		}
		bed.In(t, redis.Options{Hooks: redis.Hooks{Write: expired}, Early: true}, func(t *testing.T, w *redis.World) {
			n := w.Node("a:1")
			n.SetClock(time.Hour, drift)
			start := time.Now()
			require.Equal(t, time.Hour, n.Now().Sub(start))
			n.Do("SET", "k", "v", "PX", "100000")
			time.Sleep(10 * time.Second)
			ran := n.Now().Sub(start) - time.Hour
			require.Equal(t, time.Duration(float64(10*time.Second)*(1+drift)).Round(time.Millisecond), ran.Round(time.Millisecond))
			time.Sleep(200 * time.Second)
			n.Do("PING")
			require.InDelta(t, float64(100*time.Second)/(1+drift), gone.Sub(start), float64(2*time.Millisecond))
		})
	}
}
