// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"sync"
	"time"
)

// Each power of two nanoseconds has so many buckets: they are 1.1 % apart.
const fine = 64

// histogram counts durations in the same memory however long a run takes. The zero value is empty. Workers add
// to it at the same time.
type histogram struct {
	mu     sync.Mutex
	counts [64 * fine]int64
	n      int64
	max    time.Duration
}

func bucketOf(d time.Duration) int { return int(math.Log2(float64(max(d, 1))) * fine) }

// middleOf is the duration that stands for a bucket.
func middleOf(i int) time.Duration {
	return time.Duration(math.Round(math.Exp2((float64(i) + 0.5) / fine)))
}

func (h *histogram) add(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[bucketOf(d)]++
	h.n++
	h.max = max(h.max, d)
}

// percentile is the least duration that p of a hundred do not exceed, within 0.6 %; 0 of none.
func (h *histogram) percentile(p float64) time.Duration {
	want := max(1, int64(math.Ceil(p/100*float64(h.n))))
	for i, n := range h.counts {
		if want -= n; want <= 0 {
			return min(middleOf(i), h.max)
		}
	}
	return 0
}
