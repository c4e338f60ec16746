// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBucketsAreInOrderAndNarrow(t *testing.T) {
	last := -1
	for d := time.Duration(0); d < time.Hour; d += 1 + d/100 {
		i := bucketOf(d)
		require.GreaterOrEqual(t, i, last, d)
		require.InDelta(t, float64(d), float64(middleOf(i)), 1+float64(d)*0.006, d)
		last = i
	}
	require.Equal(t, 0, bucketOf(-time.Second))
	require.Less(t, bucketOf(math.MaxInt64), len(histogram{}.counts))
}

func TestPercentiles(t *testing.T) {
	var h histogram
	require.Equal(t, Latency{}, h.latency(), "of none")

	h.add(3 * time.Nanosecond)
	require.Equal(t, 3*time.Nanosecond, h.percentile(50))
	require.Equal(t, 3*time.Nanosecond, h.percentile(100))
	h.add(3*time.Millisecond + 1)
	require.LessOrEqual(t, h.percentile(100), h.max, "never above the greatest")

	random := rand.New(rand.NewPCG(1, 2))
	h = histogram{}
	var all []time.Duration
	for range 10_000 {
		d := time.Duration(random.ExpFloat64() * float64(time.Millisecond))
		h.add(d)
		all = append(all, d)
	}
	slices.Sort(all)
	for _, p := range []float64{0, 1, 50, 95, 99, 99.99, 100} {
		exact := all[max(0, int(math.Ceil(p/100*float64(len(all))))-1)]
		require.InDelta(t, float64(exact), float64(h.percentile(p)), 1+float64(exact)*0.01, p)
	}
	require.Equal(t, milliseconds(all[len(all)-1]), h.latency().Max, "the greatest is exact")
}

func TestRatesAndRatiosOfNothing(t *testing.T) {
	require.Zero(t, perSecond(7, 0))
	require.Zero(t, ratio(1, 0))
	require.Equal(t, 2.5, perSecond(5, 2))
	require.Equal(t, 1.1, ratio(0.33, 0.3))
}
