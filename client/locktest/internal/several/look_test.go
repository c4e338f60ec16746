package several

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// Two servers vote late, so their tokens are higher than the holder's, and are among the first to answer
// when the holder looks at its lock, a second later: it is the holder's all the same.
func TestLateVotersAreLookedAtFirst(t *testing.T) {
	on(t, 5, func(b *bed) {
		c := b.client(client.Config{})
		defer c.Close()
		delay := func(d time.Duration, servers ...int) {
			for _, i := range servers {
				b.world.Delay(redis.Path{Node: b.nodes[i]}, d)
			}
		}
		delay(5*time.Millisecond, 0, 1)
		l, err := c.TryAcquire(b.Context(), "x", client.WithoutRenewal())
		require.NoError(b, err)
		time.Sleep(500 * time.Millisecond)
		delay(0, 0, 1)
		delay(5*time.Millisecond, 2, 3)
		info, err := c.Inspect(b.Context(), "x")
		require.NoError(b, err)
		assert.Equal(b, l.Fence(), info.Fence)
		time.Sleep(time.Second)
		require.NoError(b, l.Context().Err(), "%v", l)
		require.NoError(b, l.Release(b.Context()))
	})
}
