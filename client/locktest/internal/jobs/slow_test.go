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

// Where each answer takes a quarter of the lease, a lock is held, and waited for, all the same; also where
// connections break after minutes without trouble.
func TestASlowServer(t *testing.T) {
	t.Parallel()
	bed.In(t, redis.Options{Latency: 200 * time.Millisecond}, func(t *testing.T, w *redis.World) {
		n, cfg := bed.Loaded(t, w, "s:6379"), client.Config{Lease: 2 * time.Second}
		a, b := bed.Open(t, bed.Single(w, "a", n.Addr()), cfg), bed.Open(t, bed.Single(w, "b", n.Addr()), cfg)
		l := holding(t, a, "x")
		next := bed.Waits(t, b, "x", nil)
		for range 5 {
			time.Sleep(time.Minute)
			w.Reset(redis.Path{Host: "b"})
		}
		require.Empty(t, next)
		require.NoError(t, l.Release(ctx))
		got := <-next
		require.NotNil(t, got)
		time.Sleep(time.Minute)
		require.NoError(t, got.Release(ctx))
	})
}
