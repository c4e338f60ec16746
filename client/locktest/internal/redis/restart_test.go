// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/stretchr/testify/require"
)

// A clock that runs faster ends keys earlier by this world's clock, and at the time that it names
// by its own.
func TestDrift(t *testing.T) {
	for _, drift := range []float64{0.1, -0.1} {
		var gone time.Time
		bed.In(t, redis.Options{Hooks: whenExpired(&gone), Early: true}, func(t *testing.T, w *redis.World) {
			n := w.Node("a:1")
			n.SetClock(time.Hour, drift)
			start := time.Now()
			require.Equal(t, time.Hour, n.Now().Sub(start))
			n.Do("SET", "k", "v", "PX", "100000")
			time.Sleep(10 * time.Second)
			ran := n.Now().Sub(start) - time.Hour
			require.Equal(t, time.Duration(float64(10*time.Second)*(1+drift)).Round(time.Millisecond), ran.Round(time.Millisecond))
			time.Sleep(200 * time.Second)
			n.Do("PING")
			require.InDelta(t, float64(100*time.Second)/(1+drift), gone.Sub(start), float64(2*time.Millisecond))
		})
	}
}
