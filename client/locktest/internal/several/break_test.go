// SPDX-License-Identifier: Apache-2.0

package several

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// A server that could not be reached when a lock was broken gives its vote to the next holder when the one
// before has learned of it, at its next renewal, and released. Else the loss of one more would cost that one its lock.
func TestABrokenLockKeepsNoVote(t *testing.T) {
	on(t, 3, func(b *several) {
		long := client.Config{Guard: 11 * time.Minute}
		c, other := b.client(long), b.client(long)
		time.Sleep(12 * time.Minute)
		l := b.hold(c, "x", client.WithLease(10*time.Minute))
		time.Sleep(5 * time.Second)
		require.Equal(b, 3, b.votes("x", l.Owner()))
		cut := redis.Path{Node: b.from("x", 1)}
		b.world.Stall(cut, redis.Both)
		_, err := other.Break(b.Context(), "x", "wanted")
		require.NoError(b, err)
		time.Sleep(5 * time.Second)
		b.world.Drop(cut)
		time.Sleep(10*time.Minute/3 + time.Second)
		require.ErrorIs(b, l.Release(b.Context()), client.ErrBroken)
		time.Sleep(time.Second)
		require.Zero(b, b.votes("x", l.Owner()))
		next := b.hold(other, "x")
		b.from("x", 2).Kill()
		time.Sleep(20 * time.Second)
		require.NoError(b, context.Cause(next.Context()))
	})
}

// A vote that is broken before the others are asked is no outage: the others are enough.
func TestALockIsBrokenBetweenTheRounds(t *testing.T) {
	for _, wait := range []bool{false, true} {
		on(t, 5, func(b *several) {
			c, rival := b.two()
			held := b.hold(rival, "x")
			_, err := c.TryAcquire(b.Context(), "x")
			require.ErrorIs(b, err, client.ErrBusy, "now one server is asked before the others")
			b.release(held)
			b.world.Delay(redis.Path{}, 50*time.Millisecond)
			time.AfterFunc(120*time.Millisecond, func() { // the first vote is back, and the others are on their way
				for _, n := range b.nodes {
					n.Do("FCALL", functions.Break, "1", "lock:x", functions.OptReason, "too early")
				}
			})
			take := c.TryAcquire
			if wait {
				take = c.Acquire
			}
			l, err := take(b.Context(), "x")
			require.NoError(b, err)
			assert.GreaterOrEqual(b, b.votes("x", l.Owner()), 3)
			b.release(l)
		})
	}
}

// Who took a lock while it could not reach one of three servers has it at two. When one of those is
// lost, what is left of it is at one server: an operator must be told that it is held, and by whom,
// and may break it.
func TestALockThatMayBeHeldIsBroken(t *testing.T) {
	on(t, 3, func(b *several) {
		one, operator := b.two()
		away := redis.Path{Host: "h1", Node: b.from("x", 1)}
		b.world.Refuse(away, true)
		b.world.Reset(away)
		l := b.hold(one, "x")
		require.Equal(b, 2, b.votes("x", l.Owner()))
		b.from("x", 2).Kill()
		info, err := operator.Inspect(b.Context(), "x")
		require.NoError(b, err)
		assert.Equal(b, l.Owner(), info.Holder.Owner)
		assert.Equal(b, l.Fence(), info.Fence)
		info, err = operator.Break(b.Context(), "x", "runaway")
		require.NoError(b, err)
		assert.Equal(b, l.Owner(), info.Holder.Owner)
		info, err = operator.Inspect(b.Context(), "x")
		require.NoError(b, err)
		assert.False(b, info.Held)
		time.Sleep(lease)
		assert.Error(b, l.Context().Err())
	})
}
