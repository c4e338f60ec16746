package main

import (
	"math"
	"math/bits"
	"time"
)

// Below 2^fineBits ns a bucket is one nanosecond wide; above, each power of two has 2^fineBits
// buckets: 1.6 % apart.
const (
	fineBits = 6
	buckets  = (64 - fineBits) << fineBits
)

// histogram counts durations without allocating: a list would be measured too.
type histogram struct {
	N      int64
	Counts map[int]int64 `json:",omitempty"` // of a histogram that was packed for another process
	counts []int32
}

func newHistogram() *histogram { return &histogram{counts: make([]int32, buckets)} }

func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < 1<<fineBits {
		return int(v)
	}
	shift := bits.Len64(v) - 1 - fineBits
	return (shift+1)<<fineBits + int(v>>shift) - 1<<fineBits
}

// middleOf is the value that stands for a bucket.
func middleOf(i int) time.Duration {
	if i < 1<<fineBits {
		return time.Duration(i)
	}
	shift := i>>fineBits - 1
	low := uint64(i&(1<<fineBits-1)+1<<fineBits) << shift
	return time.Duration(low + uint64(1)<<shift/2)
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucketOf(d)]++
	h.N++
}

// merge adds all of other, packed or not.
func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	for i, n := range other.Counts {
		h.counts[i] += int32(n)
	}
	h.N += other.N
}

// pack makes the histogram fit for JSON.
func (h *histogram) pack() *histogram {
	h.Counts = map[int]int64{}
	for i, n := range h.counts {
		if n > 0 {
			h.Counts[i] = int64(n)
		}
	}
	h.counts = nil
	return h
}

// quantile is the smallest value that a share q of all does not exceed, in microseconds; NaN of
// none.
func (h *histogram) quantile(q float64) float64 {
	if h.N == 0 {
		return math.NaN()
	}
	want := int64(math.Ceil(q * float64(h.N)))
	for i, n := range h.counts {
		if want -= int64(n); want <= 0 && n > 0 {
			return float64(middleOf(i)) / 1e3
		}
	}
	return math.NaN()
}
