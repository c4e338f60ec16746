// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

// baton is what a holder of the contended lock leaves to the next one. With its mutex they count their turns.
type baton struct {
	mu       sync.Mutex
	owner    string
	released time.Time // when its release began
}

// contended lets all workers want one lock. Half of them ask by each client, so it goes over the server,
// as between two hosts: the goroutines of one client would pass it on in memory, for a while, if their
// leases were the same.
func (r *run) contended(ctx context.Context) *Turns {
	turns := &Turns{Clients: len(r.clients), Served: make([]int64, r.Workers)}
	var wait, handOff histogram
	var last baton
	turns.Took = r.work(ctx, Contended, r.Workers, func(ctx context.Context, worker int) error {
		c := r.clients[worker%len(r.clients)]
		lease := r.Lease - time.Duration(worker)*time.Millisecond // not longer: Config.Guard counts on it
		asked := time.Now()
		lock, err := c.Acquire(ctx, hotName, client.WithLease(lease))
		if err != nil {
			return err
		}
		got := time.Now()
		wait.add(got.Sub(asked))
		last.mu.Lock()
		turns.HandOffs++
		turns.Served[worker]++
		switch {
		case last.owner == lock.Owner():
			turns.InProcess++
		case last.released.After(asked): // it was waited for
			handOff.add(got.Sub(last.released))
		}
		last.owner, last.released = lock.Owner(), time.Now()
		last.mu.Unlock()
		return lock.Release(ctx)
	})
	turns.HandOffsPerSecond = perSecond(turns.HandOffs, turns.Seconds)
	turns.WaitMS, turns.HandOffMS = wait.latency(), handOff.latency()
	turns.ServedMin, turns.ServedMax = slices.Min(turns.Served), slices.Max(turns.Served)
	return turns
}
