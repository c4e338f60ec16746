// SPDX-License-Identifier: Apache-2.0

package several

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// A server that was restarted empty votes again after Guard and two renewals, also if nobody takes a
// lock meanwhile: its memory begins at the first of them.
func TestAllMayBeRestartedUnderALock(t *testing.T) {
	on(t, 3, func(b *several) {
		l := b.hold(b.client(client.Config{}), "x")
		for _, n := range b.nodes {
			n.Kill()
			n.Restart(redis.Nothing)
			require.Equal(b, functions.Library, n.Do("FUNCTION", "LOAD", "REPLACE", functions.Source))
			time.Sleep(lease + 2*lease/3 + time.Second)
			require.NoError(b, l.Context().Err())
			assert.Equal(b, 3, b.votes("x", l.Owner()))
		}
		b.release(l)
	})
}

// A majority is lost under a lock that another waits for. Servers that were away remember, and those that
// were restarted do not, although they have their data: they let nobody in before the guard is over.
func TestAMajorityComesBack(t *testing.T) {
	// What was left at the servers is undone within a second, and a waiter asks within 1.5 s after that.
	const soon = 4 * time.Second
	for name, c := range map[string]struct {
		lose, back func(n *redis.Node)
		pause      time.Duration
	}{
		"with its memory": {(*redis.Node).Pause, (*redis.Node).Continue, 0},
		"with its data":   {(*redis.Node).Kill, func(n *redis.Node) { n.Restart(redis.Everything) }, lease},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, 5, func(b *several) {
				holder, waiter := b.two()
				other := b.client(client.Config{})
				l := b.hold(holder, "x")
				got := bed.Waits(b.T, waiter, "x", client.ErrUnreachable)
				time.Sleep(time.Second)
				for _, n := range b.nodes[:3] {
					c.lose(n)
				}
				_, err := other.TryAcquire(b.Context(), "free")
				assert.ErrorIs(b, err, client.ErrUnreachable)
				time.Sleep(2 * lease)
				assert.ErrorIs(b, context.Cause(l.Context()), client.ErrExpired)
				assert.Empty(b, got)
				for _, n := range b.nodes[:3] {
					c.back(n)
				}
				back := time.Now()
				m := <-got
				require.NotNil(b, m)
				assert.GreaterOrEqual(b, time.Since(back), c.pause)
				assert.Less(b, time.Since(back), c.pause+soon)
				assert.Greater(b, m.Fence(), l.Fence())
				b.release(m)
			})
		})
	}
}

// A server that refuses at once is no reason to wait less for one that is far away.
func TestRenewalsWaitForServersThatAreFar(t *testing.T) {
	on(t, 5, func(b *several) {
		c := b.client(client.Config{})
		for _, n := range b.nodes[:2] {
			b.world.Delay(redis.Path{Node: n}, 100*time.Millisecond)
		}
		l, err := c.TryAcquire(b.Context(), "x")
		require.NoError(b, err)
		for _, n := range b.nodes[3:] {
			n.Kill()
		}
		time.Sleep(time.Minute)
		assert.NoError(b, l.Context().Err())
	})
}

// A server that says no, because it has forgotten all or has somebody's vote who is gone, is not waited for
// less than one that is far, and decides.
func TestAServerThatIsFarDecides(t *testing.T) {
	for _, servers := range []int{3, 5} {
		for _, far := range []time.Duration{5 * time.Millisecond, 40 * time.Millisecond} {
			on(t, servers, func(b *several) {
				c := b.client(client.Config{Guard: 15 * time.Second})
				time.Sleep(6 * time.Second) // until the guard is over
				b.world.Delay(redis.Path{}, 500*time.Microsecond)
				for i := range servers / 2 {
					b.world.Delay(redis.Path{Node: b.from("x", i)}, far)
				}
				l, n := b.hold(c, "x"), b.from("x", servers-1)
				require.Equal(b, servers, b.votes("x", l.Owner()))
				n.Restart(redis.Nothing)
				b.load(n)
				for _, name := range []string{"free", "taken"} {
					n.Do("FCALL", functions.Acquire, "1", "lock:taken", "gone", "600000")
					began := time.Now()
					b.release(bed.Must(c.Acquire(b.Context(), name)))
					assert.Less(b, time.Since(began), time.Second)
				}
				time.Sleep(2 * lease)
				assert.NoError(b, l.Context().Err())
				b.release(l)
			})
		}
	}
}
