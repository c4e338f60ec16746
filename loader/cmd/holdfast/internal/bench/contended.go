package bench

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

// baton is what a holder of the contended lock leaves to the next one.
type baton struct {
	mu       sync.Mutex
	owner    string
	released time.Time // when its release began
}

// contended lets all workers want one lock. Half of them ask by each client, so it goes over the server,
// as between two hosts: the goroutines of one client would pass it on in memory, for a while, if their
// leases were the same.
func (r *run) contended(ctx context.Context) *Turns {
	type tally struct {
		wait, handOff     histogram
		served, inProcess int64
	}
	tallies := make([]tally, r.Workers)
	var last baton
	took := r.crew(Contended, r.Workers).work(ctx, func(ctx context.Context, worker int) error {
		t := &tallies[worker]
		c := r.clients[worker%len(r.clients)]
		lease := r.Lease - time.Duration(worker)*time.Millisecond // not longer: Config.Guard counts on it
		asked := time.Now()
		lock, err := c.Acquire(ctx, hotName, client.WithLease(lease))
		if err != nil {
			return r.doubt(hotName, err)
		}
		got := time.Now()
		t.wait.add(got.Sub(asked))
		t.served++
		last.mu.Lock()
		switch {
		case last.owner == lock.Owner():
			t.inProcess++
		case last.released.After(asked): // it was waited for
			t.handOff.add(got.Sub(last.released))
		}
		last.owner, last.released = lock.Owner(), time.Now()
		last.mu.Unlock()
		return r.doubt(hotName, lock.Release(ctx))
	})
	turns := &Turns{Took: took, Clients: len(r.clients)}
	var wait, handOff histogram
	for i := range tallies {
		t := &tallies[i]
		wait.merge(&t.wait)
		handOff.merge(&t.handOff)
		turns.HandOffs += t.served
		turns.InProcess += t.inProcess
		turns.Served = append(turns.Served, t.served)
	}
	turns.HandOffsPerSecond = perSecond(turns.HandOffs, took.Seconds)
	turns.WaitMS, turns.HandOffMS = wait.latency(), handOff.latency()
	turns.ServedMin, turns.ServedMax = slices.Min(turns.Served), slices.Max(turns.Served)
	return turns
}
