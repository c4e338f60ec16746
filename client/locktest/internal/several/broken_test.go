package several

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// A server that could not be reached when a lock was broken gives its vote to the next holder when the one
// before has learned of it, at its next renewal, and released. Else the loss of one more would cost that one its lock.
func TestABrokenLockKeepsNoVote(t *testing.T) {
	t.Parallel()
	on(t, 3, func(b *bed) {
		ctx := context.Background()
		c, other := b.client(client.Config{Guard: 11 * time.Minute}), b.client(client.Config{Guard: 11 * time.Minute})
		defer c.Close()
		defer other.Close()
		time.Sleep(12 * time.Minute)
		l := b.hold(c, "x", client.WithLease(10*time.Minute))
		time.Sleep(5 * time.Second)
		require.Equal(b, 3, b.votes("x", l.Owner()))
		line := b.line("x")
		cut, lost := b.nodes[(line+1)%3], b.nodes[(line+2)%3]
		b.world.Stall(redis.Path{Node: cut}, redis.Both)
		_, err := other.Break(ctx, "x", "wanted")
		require.NoError(b, err)
		time.Sleep(5 * time.Second)
		b.world.Drop(redis.Path{Node: cut})
		time.Sleep(10*time.Minute/3 + time.Second)
		require.ErrorIs(b, l.Release(ctx), client.ErrBroken)
		time.Sleep(time.Second)
		require.Zero(b, b.votes("x", l.Owner()))
		next := b.hold(other, "x")
		lost.Kill()
		time.Sleep(20 * time.Second)
		require.NoError(b, context.Cause(next.Context()))
	})
}
