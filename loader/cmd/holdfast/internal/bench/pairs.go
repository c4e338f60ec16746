// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"time"
)

// pairs takes and gives back locks that nobody else wants.
func (r *run) pairs(ctx context.Context, part Part, workers int) *Pairs {
	var acquire, release histogram
	turns := make([]int, workers)
	took := r.work(ctx, part, workers, func(ctx context.Context, worker int) error {
		// Worker w of n has the names w, w+n, w+2n and so on.
		own := r.Locks() / workers
		name := r.name(worker + turns[worker]%own*workers)
		turns[worker]++
		asked := time.Now()
		lock, err := r.clients[0].Acquire(ctx, name)
		if err != nil {
			return err
		}
		got := time.Now()
		if err := lock.Release(ctx); err != nil {
			return err
		}
		release.add(time.Since(got))
		acquire.add(got.Sub(asked))
		return nil
	})
	return &Pairs{Took: took, Locks: r.Locks(), Pairs: acquire.n, PairsPerSecond: perSecond(acquire.n, took.Seconds),
		AcquireMS: acquire.latency(), ReleaseMS: release.latency()}
}
