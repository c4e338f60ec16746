// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPartsShareTheTime(t *testing.T) {
	s := Settings{For: time.Minute, Parts: []Part{Renewal, Contended, Renewal}}
	require.Equal(t, []Part{RoundTrip, Contended, Renewal}, s.chosen(), "the yardstick comes first")
	require.Equal(t, 2*time.Second, s.share(RoundTrip), "the yardstick needs no more")
	require.Equal(t, 29*time.Second, s.share(Contended))
	s.For = 3 * time.Second
	require.Equal(t, []time.Duration{time.Second, time.Second}, []time.Duration{s.share(RoundTrip), s.share(Renewal)})
	s.Parts = nil
	require.Equal(t, []Part{RoundTrip}, s.chosen())
	require.Equal(t, s.For, s.share(RoundTrip))
}

func TestAReportCountsInRoundTrips(t *testing.T) {
	r := Report{RoundTrip: &Trips{MS: Latency{P50: 2}}, Alone: &Pairs{AcquireMS: Latency{P50: 3}, ReleaseMS: Latency{P50: 2}},
		Contended: &Turns{HandOffMS: Latency{P50: 5}}, Renewal: &Trips{MS: Latency{P50: 2}}}
	r.compare()
	require.Equal(t, []float64{1, 1.5, 1, 2.5, 1}, []float64{r.RoundTrip.RoundTrips, r.Alone.AcquireRoundTrips,
		r.Alone.ReleaseRoundTrips, r.Contended.HandOffRoundTrips, r.Renewal.RoundTrips})
}
