// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// What a joinable owner got is confirmed if a ReleaseOwner crosses it: within MaxWait too.
func TestAConfirmationEndsWithTheWait(t *testing.T) {
	t.Parallel()
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := bed.Loaded(t, w, "s:6379")
		c := bed.Open(t, bed.Single(w, "h", n.Addr()), client.Config{})
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
