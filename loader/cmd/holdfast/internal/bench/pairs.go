package bench

import (
	"context"
	"time"
)

// pairs takes and gives back locks that nobody else wants.
func (r *run) pairs(ctx context.Context, part Part, workers int) *Pairs {
	type tally struct {
		acquire, release histogram
		turn             int
	}
	tallies := make([]tally, workers)
	took := r.crew(part, workers).work(ctx, func(ctx context.Context, worker int) error {
		t := &tallies[worker]
		// Worker w of n has the names w, w+n, w+2n and so on.
		own := (r.Locks - worker + workers - 1) / workers
		name := r.name(worker + t.turn%own*workers)
		t.turn++
		asked := time.Now()
		lock, err := r.clients[0].Acquire(ctx, name)
		if err != nil {
			return r.doubt(name, err)
		}
		got := time.Now()
		if err := lock.Release(ctx); err != nil {
			return r.doubt(name, err)
		}
		t.release.add(time.Since(got))
		t.acquire.add(got.Sub(asked))
		return nil
	})
	var acquire, release histogram
	for i := range tallies {
		acquire.merge(&tallies[i].acquire)
		release.merge(&tallies[i].release)
	}
	return &Pairs{Took: took, Locks: r.Locks, Pairs: acquire.n, PairsPerSecond: perSecond(acquire.n, took.Seconds),
		AcquireMS: acquire.latency(), ReleaseMS: release.latency()}
}
