package several

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/client/quorum"
)

// "ErrTimeout: waited until MaxWait or the deadline, while the server answered": a majority answers,
// and says who has the lock. Only the line's server is lost.
func TestAttackATimeoutWhileTheLineIsLost(t *testing.T) {
	for _, way := range []string{"killed", "paused", "slow", "mute"} {
		lose := ways[way]
		for _, before := range []bool{false, true} {
			for _, wait := range []time.Duration{300 * time.Millisecond, time.Second, 8 * time.Second} {
				t.Run(fmt.Sprint(way, "/", wait, "/", before), func(t *testing.T) {
					on(t, 5, func(b *bed) {
						c, other := b.client(client.Config{}), b.client(client.Config{})
						defer c.Close()
						defer other.Close()
						line := b.line("x")
						l, err := c.Acquire(b.Context(), "x")
						require.NoError(b, err)
						if before {
							lose(b, b.nodes[line])
							time.Sleep(5 * time.Second)
						} else {
							time.AfterFunc(wait/2, func() { lose(b, b.nodes[line]) })
						}
						_, err = other.Acquire(b.Context(), "x", client.WithMaxWait(wait))
						if ks := kinds(err); len(ks) != 1 || ks[0] != "timeout" {
							b.Errorf("lost before %v: %v: %v", before, ks, err)
						}
						require.NoError(b, l.Release(b.Context()))
					})
				})
			}
		}
	}
}

// With a majority gone, the same calls say ErrUnreachable; with it back, they work again.
func TestAttackAMajorityIsGone(t *testing.T) {
	for way, lose := range ways {
		if way == "empty" || way == "ahead" || way == "behind" || way == "slow" || way == "bare" || way == "full" {
			continue
		}
		t.Run(way, func(t *testing.T) {
			on(t, 3, func(b *bed) {
				c := b.client(client.Config{})
				defer func() { b.quick("Close", 1100*time.Millisecond, c.Close) }()
				lose(b, b.nodes[0])
				lose(b, b.nodes[2])
				for range 2 {
					ctx, cancel := context.WithTimeout(b.Context(), 2*time.Second)
					defer cancel()
					b.quick("TryAcquire", 2100*time.Millisecond, func() {
						_, err := c.TryAcquire(ctx, "x")
						assert.Equal(b, []string{"unreachable"}, kinds(err), "%v", err)
					})
					ctx, cancel = context.WithTimeout(b.Context(), 2*time.Second)
					defer cancel()
					b.quick("Acquire", 2100*time.Millisecond, func() {
						// who stands in line hears only from the server that has it, and that may answer
						_, err := c.Acquire(ctx, "x")
						assert.Contains(b, [][]string{{"unreachable"}, {"timeout"}}, kinds(err), "%v", err)
					})
					ctx, cancel = context.WithTimeout(b.Context(), 2*time.Second)
					defer cancel()
					b.quick("Inspect", 2100*time.Millisecond, func() {
						_, err := c.Inspect(ctx, "x")
						assert.Equal(b, []string{"unreachable"}, kinds(err), "%v", err)
					})
					b.quick("Break", 2100*time.Millisecond, func() {
						ctx, cancel := context.WithTimeout(b.Context(), 2*time.Second)
						defer cancel()
						_, err := c.Break(ctx, "x", "why")
						assert.Equal(b, []string{"unreachable"}, kinds(err), "%v", err)
					})
					b.quick("Version", 2100*time.Millisecond, func() {
						ctx, cancel := context.WithTimeout(b.Context(), 2*time.Second)
						defer cancel()
						_, err := c.Version(ctx)
						b.Logf("%s: version: %v", way, err)
					})
					time.Sleep(10 * time.Second)
				}
			})
		})
	}
}

// Hostile input is refused with ErrArgument.
func TestAttackHostileMembers(t *testing.T) {
	on(t, 9, func(b *bed) {
		all := b.options("h")
		open := func(what string, o []rueidis.ClientOption, cfg client.Config) {
			c, err := quorum.Open(o, cfg)
			if c != nil {
				b.Errorf("%s: was opened", what)
				c.Close()
			}
			assert.Equal(b, []string{"invalid"}, kinds(err), "%s: %v", what, err)
			assert.ErrorIs(b, err, client.ErrArgument, what)
		}
		open("nil", nil, client.Config{})
		for _, n := range []int{0, 1, 2, 4, 6, 8} {
			open("number", all[:n], client.Config{})
		}
		open("eleven", append(append([]rueidis.ClientOption{}, all...), all[0], all[1]), client.Config{})
		open("twice", []rueidis.ClientOption{all[0], all[1], all[0]}, client.Config{})
		open("replicas", all[:3], client.Config{Replicas: 1})
		open("guard", all[:3], client.Config{Lease: 10 * time.Second, Guard: 5 * time.Second})
		open("negative guard", all[:3], client.Config{Guard: -1})
		for _, n := range []int{3, 5, 7, 9} {
			c, err := quorum.Open(all[:n], client.Config{Lease: lease})
			require.NoError(b, err)
			l, err := c.Acquire(b.Context(), "x")
			require.NoError(b, err)
			assert.Nil(b, c.Redis())
			time.Sleep(time.Second)
			assert.Equal(b, n, b.votes("x", l.Owner()))
			require.NoError(b, l.Release(b.Context()))
			time.Sleep(time.Second)
			c.Close()
		}
		_, err := quorum.New(nil, client.Config{})
		assert.ErrorIs(b, err, client.ErrArgument)
		_, err = quorum.New([]rueidis.Client{nil, nil, nil}, client.Config{})
		assert.ErrorIs(b, err, client.ErrArgument)
		r0, err := rueidis.NewClient(all[0])
		require.NoError(b, err)
		r1, err := rueidis.NewClient(all[1])
		require.NoError(b, err)
		_, err = quorum.New([]rueidis.Client{r0, r1, r0}, client.Config{})
		assert.ErrorIs(b, err, client.ErrArgument, "the same client twice")
		_, err = quorum.New([]rueidis.Client{r0, r1, nil}, client.Config{})
		assert.ErrorIs(b, err, client.ErrArgument, "a nil client")
		r0.Close()
		r1.Close()
	})
}

// A bad option of a call is ErrArgument.
func TestAttackHostileOptions(t *testing.T) {
	on(t, 3, func(b *bed) {
		c := b.client(client.Config{})
		defer c.Close()
		for what, o := range map[string]client.Option{
			"owner": client.WithOwner("me"), "replicas": client.WithReplicas(1, 0), "no guard": client.WithGuard(0),
			"short guard": client.WithGuard(time.Second), "long lease": client.WithLease(20 * time.Second),
			"lease 1ms": client.WithLease(time.Millisecond), "negative": client.WithLease(-1),
		} {
			for k, f := range []func() (*client.Lock, error){
				func() (*client.Lock, error) { return c.TryAcquire(b.Context(), "x", o) },
				func() (*client.Lock, error) { return c.Acquire(b.Context(), "x", o) },
			} {
				l, err := f()
				assert.ErrorIs(b, err, client.ErrArgument, "%s %d", what, k)
				if l != nil {
					_ = l.Release(b.Context())
				}
			}
		}
		for _, err := range []error{c.ReleaseOwner(b.Context(), "x", "me")} {
			b.Logf("ReleaseOwner: %v", err)
		}
		l, err := c.Acquire(b.Context(), "x")
		require.NoError(b, err)
		assert.ErrorIs(b, l.RenewFor(b.Context(), 20*time.Second), client.ErrArgument, "longer than Guard")
		assert.NoError(b, l.Context().Err())
		time.Sleep(20 * time.Second)
		assert.NoError(b, l.Context().Err())
		require.NoError(b, l.Release(b.Context()))
	})
}

// A member is named twice and is down when the client opens: "two that are one" is ErrArgument, or
// at the least it must not count twice.
func TestAttackTheSameServerTwiceWhileItIsDown(t *testing.T) {
	on(t, 3, func(b *bed) {
		all := b.options("h")
		b.nodes[0].Kill()
		c, err := quorum.Open([]rueidis.ClientOption{all[0], all[1], all[2], all[0], all[1]}, client.Config{Lease: lease})
		assert.ErrorIs(b, err, client.ErrArgument)
		if c != nil {
			c.Close()
		}
		c, err = quorum.Open([]rueidis.ClientOption{all[0], all[1], all[0]}, client.Config{Lease: lease})
		assert.ErrorIs(b, err, client.ErrArgument)
		if c != nil {
			c.Close()
		}
		b.nodes[0].Restart(redis.Everything)
	})
}
