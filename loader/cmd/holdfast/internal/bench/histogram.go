package bench

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

// histogram counts durations in the same memory however long a run takes. The zero value is empty.
type histogram struct {
	counts [buckets]int64
	n      int64
	max    time.Duration
}

func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < 1<<fineBits {
		return int(v)
	}
	shift := bits.Len64(v) - 1 - fineBits
	return (shift+1)<<fineBits + int(v>>shift) - 1<<fineBits
}

// middleOf is the duration that stands for a bucket.
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
	h.n++
	h.max = max(h.max, d)
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.n += other.n
	h.max = max(h.max, other.max)
}

// percentile is the least duration that p of a hundred do not exceed, within 0.8 %; 0 of none.
func (h *histogram) percentile(p float64) time.Duration {
	want := max(1, int64(math.Ceil(p/100*float64(h.n))))
	for i, n := range h.counts {
		if want -= n; want <= 0 {
			return min(middleOf(i), h.max)
		}
	}
	return 0
}
