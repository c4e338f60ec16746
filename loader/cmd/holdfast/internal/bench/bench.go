// Package bench measures what locks cost on a deployment, by the client that programs use.
package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

// Clients are two of the same deployment, with a prefix of their own: all locks under it are the
// bench's.
type Clients [2]*client.Client

// run is one run.
type run struct {
	Settings
	clients Clients
	mu      sync.Mutex
	doubted map[string]bool // names of which a call failed
}

// Run measures, and blocks for as long as the settings say and the last calls take; when ctx ends, for the
// grace at most, and what is left of the clean-up. What was measured until then is in the report. It ends
// early too when a part had errors only.
func Run(ctx context.Context, clients Clients, s Settings) Report {
	r := &run{Settings: s, clients: clients, doubted: map[string]bool{}}
	report := r.measure(ctx)
	report.Left = r.left(context.WithoutCancel(ctx))
	report.compare()
	return report
}

func (r *run) measure(ctx context.Context) Report {
	var report Report
	for _, part := range r.chosen() {
		if ctx.Err() != nil {
			break
		}
		if r.Say != nil {
			r.Say(part, r.share(part))
		}
		var done int64
		switch part {
		case RoundTrip:
			report.RoundTrip = r.roundTrip(ctx)
			done = report.RoundTrip.Count
		case Alone:
			report.Alone = r.pairs(ctx, Alone, 1)
			done = report.Alone.Pairs
		case Parallel:
			report.Parallel = r.pairs(ctx, Parallel, r.Workers)
			done = report.Parallel.Pairs
		case Contended:
			report.Contended = r.contended(ctx)
			done = report.Contended.HandOffs
		case Renewal:
			report.Renewal = r.renewal(ctx)
			done = report.Renewal.Count
		}
		if done == 0 && len(report.took()[part].Errors) > 0 {
			break
		}
	}
	report.Interrupted = ctx.Err() != nil
	if report.RoundTrip == nil {
		report.RoundTrip = &Trips{Took: Took{Workers: 1, Errors: []Failure{}}}
	}
	return report
}

// crew is a number of workers for the time of one part.
func (r *run) crew(part Part, workers int) crew { return crew{workers, r.share(part), r.Grace} }

// name is that of a lock of Alone and Parallel.
func (r *run) name(i int) string { return fmt.Sprintf("lock-%d", i%r.Locks) }

const (
	hotName     = "contended"
	renewedName = "renewed"
)

// doubt remembers that a call about a lock failed: it may still be held.
func (r *run) doubt(name string, err error) error {
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.doubted[name] = true
	}
	return err
}

// lookAgain is between two looks at a lock that somebody still has.
const lookAgain = 50 * time.Millisecond

// left counts the locks that are not seen to be free within the grace. The clients' own clean-up may be
// under way.
func (r *run) left(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, r.Grace)
	defer cancel()
	left := 0
	for name := range r.doubted {
		if !r.free(ctx, name) {
			left++
		}
	}
	return left
}

// free blocks until a lock is free, and nobody waits, or ctx ends.
func (r *run) free(ctx context.Context, name string) bool {
	for ctx.Err() == nil {
		info, err := r.clients[0].Inspect(ctx, name)
		if err == nil && !info.Held && info.Waiters == 0 {
			return true
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
		}
	}
	return false
}
