package several

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// A server that could not be reached when a lock was broken gives its vote to the next holder soon after,
// however long the lock was to last. Else the loss of one more would cost that one its lock.
func TestABrokenLockKeepsNoVote(t *testing.T) {
	t.Parallel()
	locks := map[string]func(b *bed, c *client.Client) *client.Lock{
		"released, and kept for MinHold": func(b *bed, c *client.Client) *client.Lock {
			l := b.hold(c, "x", client.WithMinHold(10*time.Minute))
			time.Sleep(5 * time.Second)
			require.NoError(b, l.Release(context.Background()))
			return l
		},
		"of a holder that hangs": func(b *bed, c *client.Client) *client.Lock {
			l := b.hold(c, "x", client.WithLease(10*time.Minute))
			time.Sleep(5 * time.Second)
			return l
		},
	}
	for name, hold := range locks {
		t.Run(name, func(t *testing.T) {
			on(t, 3, func(b *bed) {
				ctx := context.Background()
				c, other := b.client(client.Config{Guard: 11 * time.Minute}), b.client(client.Config{Guard: 11 * time.Minute})
				defer c.Close()
				defer other.Close()
				time.Sleep(12 * time.Minute)
				l := hold(b, c)
				require.Equal(b, 3, b.votes("x", l.Owner()))
				line := b.line("x")
				cut, lost := b.nodes[(line+1)%3], b.nodes[(line+2)%3]
				b.world.Stall(redis.Path{Node: cut}, redis.Both)
				_, err := other.Break(ctx, "x", "wanted")
				require.NoError(b, err)
				time.Sleep(5 * time.Second)
				b.world.Drop(redis.Path{Node: cut})
				time.Sleep(30 * time.Second)
				require.Zero(b, b.votes("x", l.Owner()))
				next := b.hold(other, "x")
				lost.Kill()
				time.Sleep(20 * time.Second)
				require.NoError(b, context.Cause(next.Context()))
			})
		})
	}
}
