// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"
	"time"
)

// Part is one of the things that are measured.
type Part string

// The parts, in the order in which they are measured.
const (
	RoundTrip Part = "round_trip" // a call that only reads, by one worker: the yardstick
	Alone     Part = "alone"      // acquire and release by one worker
	Parallel  Part = "parallel"   // the same by all workers, each with locks of its own
	Contended Part = "contended"  // all workers on one lock, by two clients
	Renewal   Part = "renewal"    // renew a lock, by one worker
)

// Parts are all, in their order.
func Parts() []Part { return []Part{RoundTrip, Alone, Parallel, Contended, Renewal} }

// Settings say what is measured, and for how long.
type Settings struct {
	Parts   []Part        // RoundTrip is measured in any case
	For     time.Duration // of all parts together, in equal shares; RoundTrip has 2 s at most
	Workers int           // at least 2
	Lease   time.Duration // of the locks, at least MinLease
	// Grace is how long calls under way may go on without an answer when a part is over.
	Grace time.Duration
	// Say, if not nil, is told which part begins, and how long it takes. It must return at once.
	Say func(Part, time.Duration)
}

// Bounds of the settings.
const (
	MinWorkers = 2
	MaxWorkers = 500
	MinLease   = time.Second
)

// Locks is how many names Alone and Parallel take by turns.
func (s Settings) Locks() int { return 16 * s.Workers }

// chosen are the parts in their order, each once.
func (s Settings) chosen() []Part {
	return slices.DeleteFunc(Parts(), func(p Part) bool { return p != RoundTrip && !slices.Contains(s.Parts, p) })
}

// longestYardstick is enough for RoundTrip beside other parts.
const longestYardstick = 2 * time.Second

// share is the time of one of the chosen parts.
func (s Settings) share(p Part) time.Duration {
	parts := time.Duration(len(s.chosen()))
	if parts == 1 {
		return s.For
	}
	yardstick := min(s.For/parts, longestYardstick)
	if p == RoundTrip {
		return yardstick
	}
	return (s.For - yardstick) / (parts - 1)
}
