// SPDX-License-Identifier: Apache-2.0

package several

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/client/quorum"
)

// "ErrTimeout: waited until MaxWait or the deadline, while the server answered": a majority answers,
// and says who has the lock. Only the server that is asked first is lost, before or while they wait.
func TestATimeoutWhileTheFirstServerIsLost(t *testing.T) {
	for _, way := range []string{"killed", "paused", "mute"} {
		for _, wait := range []time.Duration{300 * time.Millisecond, time.Second, 8 * time.Second} {
			for _, before := range []bool{false, true} {
				on(t, 5, func(b *several) {
					c, other := b.two()
					l := b.hold(c, "x")
					if before {
						ways[way](b, b.from("x", 0))
						time.Sleep(5 * time.Second)
					} else {
						time.AfterFunc(wait/2, func() { ways[way](b, b.from("x", 0)) })
					}
					_, err := other.Acquire(b.Context(), "x", client.WithMaxWait(wait))
					assert.Equal(b, []string{"timeout"}, bed.Kinds(err), "%s, before %v, %v: %v", way, before, wait, err)
					b.release(l)
				})
			}
		}
	}
}

// With a majority gone, all calls say ErrUnreachable, in time, and so they do a while later.
func TestAMajorityIsGone(t *testing.T) {
	for way, lose := range ways {
		on(t, 3, func(b *several) {
			c := b.client(client.Config{})
			lose(b, b.nodes[0])
			lose(b, b.nodes[2])
			for range 2 {
				for what, call := range map[string]func(context.Context) error{
					"TryAcquire": func(ctx context.Context) error { _, err := c.TryAcquire(ctx, "x"); return err },
					"Acquire":    func(ctx context.Context) error { _, err := c.Acquire(ctx, "x"); return err },
					"Inspect":    func(ctx context.Context) error { _, err := c.Inspect(ctx, "x"); return err },
					"Break":      func(ctx context.Context) error { _, err := c.Break(ctx, "x", "why"); return err },
				} {
					ctx, cancel := context.WithTimeout(b.Context(), 2*time.Second)
					began := time.Now()
					err := call(ctx)
					cancel()
					assert.Less(b, time.Since(began), 2100*time.Millisecond, "%s, %s", way, what)
					if kind := bed.Kinds(err); what != "Acquire" || len(kind) != 1 || kind[0] != "timeout" { // who hears one that answers
						assert.Equal(b, []string{"unreachable"}, kind, "%s, %s: %v", way, what, err)
					}
				}
				time.Sleep(10 * time.Second)
			}
			began := time.Now()
			c.Close()
			assert.Less(b, time.Since(began), 1100*time.Millisecond, way)
		})
	}
}

// A bad option of a call is ErrArgument.
func TestOptionsOfACallAreChecked(t *testing.T) {
	on(t, 3, func(b *several) {
		c, other := b.two()
		for what, o := range map[string]client.Option{
			"owner": client.WithOwner("me"), "replicas": client.WithReplicas(1, 0), "no guard": client.WithGuard(0),
			"limit": client.WithLimit(2), "shared": client.WithShared(),
			"short guard": client.WithGuard(time.Second), "long lease": client.WithLease(20 * time.Second),
			"lease 1ms": client.WithLease(time.Millisecond), "negative": client.WithLease(-1),
		} {
			_, err := c.TryAcquire(b.Context(), "x", o)
			assert.ErrorIs(b, err, client.ErrArgument, what)
			_, err = c.Acquire(b.Context(), "x", o)
			assert.ErrorIs(b, err, client.ErrArgument, what)
		}
		_, err := c.Holders(b.Context(), "x")
		assert.ErrorIs(b, err, client.ErrArgument)
		_, err = c.OnceValue(b.Context(), "x", time.Minute, nil)
		assert.ErrorIs(b, err, client.ErrArgument)
		assert.ErrorContains(b, err, "OnceValue is not possible on several servers")
		l := b.hold(c, "x")
		assert.ErrorIs(b, l.RenewFor(b.Context(), 20*time.Second), client.ErrArgument, "longer than Guard")
		for _, c := range []*client.Client{c, other} {
			assert.ErrorIs(b, c.ReleaseOwner(b.Context(), "x", l.Owner()), client.ErrArgument, "not taken WithOwner")
		}
		time.Sleep(20 * time.Second)
		assert.NoError(b, l.Context().Err())
		assert.Equal(b, 3, b.votes("x", l.Owner()))
		b.release(l)
	})
}

// A server that has two names has no second vote, also where it cannot say at first which server it
// is. The log says what is wrong.
func TestAServerWithTwoNamesHasOneVote(t *testing.T) {
	on(t, 5, func(b *several) {
		options := b.options("h")
		dial := options[4].DialCtxFn
		options[4].InitAddress = []string{"alias:6379"}
		options[4].DialCtxFn = func(ctx context.Context, _ string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
			return dial(ctx, b.nodes[3].Addr(), d, cfg)
		}
		b.nodes[3].Refuse(func(cmd []string) redis.Error {
			if cmd[0] == "INFO" {
				return "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
			}
			return ""
		})
		var log strings.Builder
		c, err := quorum.Open(options, client.Config{Lease: lease, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(b, err)
		defer c.Close()
		time.Sleep(time.Second)
		b.nodes[3].Refuse(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Contains(b, log.String(), "two of the servers are one")
		b.release(b.hold(c, "x"))
		b.nodes[0].Kill()
		b.nodes[1].Kill()
		_, err = c.TryAcquire(b.Context(), "x")
		assert.ErrorIs(b, err, client.ErrUnreachable, "two of five servers are left")
	})
}
