// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/integration/resp"
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

// raw is a connection that the test speaks on itself.
type raw struct{ *resp.Conn }

func dial(t *testing.T, w *redis.World, host, addr string) raw {
	t.Helper()
	c := bed.Must(w.Host(host).Dial(ctx, addr, nil, nil))
	t.Cleanup(func() { _ = c.Close() })
	return raw{resp.New(c)}
}

// send writes a command. What fails shows in the reply.
func (c raw) send(words ...string) { _ = c.Send(words) }

// silent asserts that nothing arrives.
func (c raw) silent(t *testing.T, within time.Duration) {
	t.Helper()
	_, err := c.Receive(within)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

func (c raw) ping(t *testing.T) {
	t.Helper()
	c.send("PING")
	require.Equal(t, resp.Status("PONG"), bed.Must(c.Receive(time.Minute)))
}

func TestSilencedConnectionsAreNeverAnswered(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:1")
		before := dial(t, w, "h", "a:1")
		w.Silence(redis.Path{Host: "h"}, true)
		during, other := dial(t, w, "h", "a:1"), dial(t, w, "x", "a:1")
		w.Silence(redis.Path{Host: "h"}, false)
		after := dial(t, w, "h", "a:1")
		for _, c := range []raw{before, other, after} {
			c.ping(t)
		}
		during.send("SET", "k", "v")
		during.silent(t, time.Hour)
		require.Equal(t, int64(0), n.Do("EXISTS", "k"))
	})
}

// Stalled packets arrive after Resume, and are lost by Drop.
func TestResumeDeliversAndDropLoses(t *testing.T) {
	bed.Each(t, map[string]bool{"resume": true, "drop": false}, func(t *testing.T, w *redis.World, resume bool) {
		n := w.Node("a:1")
		c, p := dial(t, w, "h", "a:1"), redis.Path{Host: "h"}
		w.Stall(p, redis.ToServer)
		c.send("SET", "k", "v")
		c.silent(t, time.Minute)
		if resume {
			w.Resume(p)
			require.Equal(t, resp.Status("OK"), bed.Must(c.Receive(time.Second)))
			require.Equal(t, int64(1), n.Do("EXISTS", "k"))
			return
		}
		w.Drop(p)
		_, err := c.Receive(time.Second)
		var op *net.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "read", op.Op)
		require.Equal(t, int64(0), n.Do("EXISTS", "k"))
		dial(t, w, "h", "a:1").ping(t)
	})
}

// A stall holds up the end of a connection too, and no longer than it lasts.
func TestTheEndOfAConnectionArrivesAfterAStall(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:1")
		c, p := dial(t, w, "h", "a:1"), redis.Path{Host: "h"}
		w.Stall(p, redis.ToClient)
		n.Restart(redis.Nothing)
		c.silent(t, time.Minute)
		w.Resume(p)
		_, err := c.Receive(time.Minute)
		require.ErrorIs(t, err, io.EOF)
	})
}

func TestAConnectionIsMadeWhenAStallIsOver(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		w.Node("a:1")
		w.Stall(redis.Path{}, redis.ToServer)
		time.AfterFunc(1500*time.Millisecond, func() { w.Resume(redis.Path{}) })
		began := time.Now()
		c := dial(t, w, "h", "a:1")
		require.Equal(t, 3*time.Second, time.Since(began).Truncate(time.Second))
		c.ping(t)
	})
}
