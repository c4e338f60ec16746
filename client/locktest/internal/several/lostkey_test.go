package several

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// A server that loses the key while its holder counts on it, and one that the holder has no vote of,
// are a majority of three. So the next one can have the lock until the first one's renewals fail: the
// model's shortest way to two holders. A holder that all have voted for is not concerned.
func TestAKeyIsLostThatTheHolderCountsOn(t *testing.T) {
	for _, c := range []struct {
		name    string
		loses   func(b *bed, n *redis.Node)
		cut     bool
		another bool
	}{
		{"deleted, one vote is missing", deleted, true, true},
		{"deleted, all votes are there", deleted, false, false},
		{"the clock is stepped, one vote is missing", stepped, true, true},
		{"the clock is stepped, all votes are there", stepped, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			on(t, 3, func(b *bed) {
				holder, other := b.client(client.Config{}), b.client(client.Config{})
				defer holder.Close()
				defer other.Close()
				line := b.line("x")
				path := redis.Path{Host: "h1", Node: b.nodes[(line+1)%3]}
				if c.cut {
					b.world.Stall(path, redis.Both)
					defer b.world.Resume(path)
				}
				l := b.hold(holder, "x")
				c.loses(b, b.nodes[line])
				m, err := other.TryAcquire(b.Context(), "x")
				if !c.another {
					require.ErrorIs(b, err, client.ErrBusy)
					assert.NoError(b, l.Release(b.Context()))
					return
				}
				require.NoError(b, err)
				require.NoError(b, l.Context().Err(), "two holders")
				assert.Greater(b, m.Fence(), l.Fence())
				select {
				case <-l.Context().Done():
				case <-time.After(lease):
					b.Error("the first holder has not learned of it within a lease")
				}
				assert.NoError(b, m.Context().Err())
				assert.NoError(b, m.Release(b.Context()))
			})
		})
	}
}

func deleted(b *bed, n *redis.Node) { require.Equal(b, int64(1), n.Do("DEL", "lock:x")) }

func stepped(_ *bed, n *redis.Node) { n.SetClock(lease+time.Second, 0) }
