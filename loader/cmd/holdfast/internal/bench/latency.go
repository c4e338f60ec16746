// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"time"
)

// Latency is how long calls took, in milliseconds: 0 if there were none.
type Latency struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func (h *histogram) latency() Latency {
	return Latency{milliseconds(h.percentile(50)), milliseconds(h.percentile(95)), milliseconds(h.percentile(99)),
		milliseconds(h.max)}
}

func milliseconds(d time.Duration) float64 { return round(float64(d) / float64(time.Millisecond)) }

// round keeps three digits behind the point: microseconds of milliseconds.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// ratio is how many of the others one takes; 0 if that is not known.
func ratio(one, other float64) float64 {
	if other == 0 {
		return 0
	}
	return round(one / other)
}

// perSecond is the rate of so many in so many seconds.
func perSecond(n int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return math.Round(float64(n)/seconds*10) / 10
}
