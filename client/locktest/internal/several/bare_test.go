package several

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// Who took a lock while it could not reach two of five servers has it at a bare majority, until its
// next renewal after that. Until then a key that is deleted at one server lets a second holder in,
// as at a single server: with a higher token, and the first one learns of it at that renewal.
func TestAKeyOfABareMajorityIsDeleted(t *testing.T) {
	on(t, 5, func(b *bed) {
		line := b.line("x")
		one, other := b.client(client.Config{}), b.client(client.Config{})
		defer one.Close()
		defer other.Close()
		way := func(i int) redis.Path { return redis.Path{Host: "h1", Node: b.nodes[(line+i)%5]} }
		for i := 1; i <= 2; i++ {
			b.world.Refuse(way(i), true)
			b.world.Reset(way(i))
		}
		first, err := one.Acquire(b.Context(), "x")
		require.NoError(b, err)
		require.Equal(b, 3, b.votes("x", first.Owner()))
		for i := 1; i <= 2; i++ {
			b.world.Refuse(way(i), false)
		}
		b.nodes[line].Do("DEL", "lock:x")
		second, err := other.TryAcquire(b.Context(), "x")
		require.NoError(b, err)
		assert.Greater(b, second.Fence(), first.Fence())
		assert.NoError(b, first.Context().Err())
		time.Sleep(lease / 2)
		assert.ErrorIs(b, context.Cause(first.Context()), client.ErrTaken)
		require.NoError(b, second.Release(b.Context()))
	})
}

// Who took a lock while it could not reach one of three servers has it at two. When one of those is
// lost, what is left of it is at one server: an operator must be told that it is held, and by whom,
// and may break it.
func TestALockThatMayBeHeldIsBroken(t *testing.T) {
	on(t, 3, func(b *bed) {
		line := b.line("x")
		one, operator := b.client(client.Config{}), b.client(client.Config{})
		defer one.Close()
		defer operator.Close()
		away := redis.Path{Host: "h1", Node: b.nodes[(line+1)%3]}
		b.world.Refuse(away, true)
		b.world.Reset(away)
		l, err := one.Acquire(b.Context(), "x")
		require.NoError(b, err)
		require.Equal(b, 2, b.votes("x", l.Owner()))
		b.nodes[(line+2)%3].Kill()
		info, err := operator.Inspect(b.Context(), "x")
		require.NoError(b, err)
		require.True(b, info.Held)
		assert.Equal(b, l.Owner(), info.Holder.Owner)
		assert.Equal(b, l.Fence(), info.Fence)
		info, err = operator.Break(b.Context(), "x", "runaway")
		require.NoError(b, err)
		require.True(b, info.Held)
		assert.Equal(b, l.Owner(), info.Holder.Owner)
		info, err = operator.Inspect(b.Context(), "x")
		require.NoError(b, err)
		assert.False(b, info.Held)
		time.Sleep(lease)
		assert.Error(b, l.Context().Err())
	})
}
