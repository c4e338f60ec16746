package several

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// All servers are restarted one after the other, empty, while a lock is held that others wait for.
// The server that has the line gives the first of them its turn: it must not keep the holder from
// its vote, or the holder loses its majority with the servers that follow.
func TestAHolderGetsItsVotesBackFromThoseWhoWait(t *testing.T) {
	for _, waiters := range []int{1, 4} {
		for _, servers := range []int{3, 5} {
			on(t, servers, func(b *bed) {
				c := b.client(client.Config{})
				defer c.Close()
				l, err := c.Acquire(b.Context(), "x")
				require.NoError(b, err)
				waited := make(chan *client.Lock)
				for range waiters {
					other := b.client(client.Config{})
					defer other.Close()
					go func() {
						m, err := other.Acquire(b.Context(), "x")
						assert.NoError(b, err)
						waited <- m
					}()
				}
				time.Sleep(time.Second)
				for i, n := range b.nodes {
					n.Restart(redis.Nothing)
					b.load(n)
					time.Sleep(2 * lease)
					require.NoError(b, l.Context().Err(), "server %d of %d", i, servers)
					assert.Equal(b, servers, b.votes("x", l.Owner()), "server %d", i)
				}
				began, fence := time.Now(), l.Fence()
				require.NoError(b, l.Release(b.Context()))
				for range waiters {
					m := <-waited
					assert.Greater(b, m.Fence(), fence)
					fence = m.Fence()
					require.NoError(b, m.Release(b.Context()))
				}
				assert.Less(b, time.Since(began), 3*time.Second)
			})
		}
	}
}

// The servers are restarted a guard apart, empty, and nobody but the holder asks for the lock. The
// memory of each begins with the first renewal that it hears of, so its vote is back before the next
// one is missed.
func TestServersMayBeRestartedAGuardApart(t *testing.T) {
	for phase := range 8 { // of the renewals
		for _, servers := range []int{3, 5} {
			on(t, servers, func(b *bed) {
				c := b.client(client.Config{AutoLoad: true})
				defer c.Close()
				l, err := c.Acquire(b.Context(), "x")
				require.NoError(b, err)
				time.Sleep(time.Duration(phase) * lease / 24)
				for range 3 {
					for i, n := range b.nodes {
						n.Restart(redis.Nothing)
						time.Sleep(lease)
						require.NoError(b, l.Context().Err(), "server %d of %d, phase %d", i, servers, phase)
					}
				}
				time.Sleep(lease)
				assert.Equal(b, servers, b.votes("x", l.Owner()))
				require.NoError(b, l.Release(b.Context()))
			})
		}
	}
}
