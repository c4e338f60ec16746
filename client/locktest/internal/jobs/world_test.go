package jobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// in runs a test in a world with one server, for what locktest does not show: which way the network
// keeps what is sent, and for how long.
func in(t *testing.T, cfg client.Config, test func(t *testing.T, w *redis.World, n *redis.Node, c *client.Client)) {
	t.Helper()
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := bed.Loaded(t, w, "s:6379")
		cfg.Lease = 3 * time.Second
		test(t, w, n, bed.Open(t, bed.Single(w, "h", n.Addr()), cfg))
	})
}

// What a joinable owner got is confirmed if a ReleaseOwner crosses it: within MaxWait too.
func TestAConfirmationEndsWithTheWait(t *testing.T) {
	t.Parallel()
	in(t, client.Config{}, func(t *testing.T, w *redis.World, n *redis.Node, c *client.Client) {
		_, err := c.Inspect(ctx, "a")
		require.NoError(t, err)
		w.Delay(redis.Path{Node: n}, 150*time.Millisecond)
		time.AfterFunc(time.Millisecond, func() { _ = c.ReleaseOwner(ctx, "a", "job 7") })
		spend(t, 400*time.Millisecond, 410*time.Millisecond, func() {
			_, err = c.Acquire(ctx, "a", client.WithOwner("job 7"), client.WithMaxWait(400*time.Millisecond))
			require.ErrorIs(t, err, client.ErrTimeout)
		})
	})
}
