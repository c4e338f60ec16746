// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Report is what one or several schedules did.
type Report struct {
	Schedules int
	Virtual   time.Duration
	Calls     int                       // of functions
	Entries   int                       // Locks that were got
	Counts    map[string]map[string]int // by what is counted, and its kind
	Broken    []Violation
}

// What is counted.
const (
	Faults     = "faults"
	Admitted   = "admitted"   // overlaps and losses that the guarantees' table names, by the fault that admits them
	Checks     = "checks"     // how often an invariant had something to check
	Violations = "violations" // by the invariant's number
	Levels     = "schedules"  // by deployment and level
)

// Violation is an invariant that did not hold.
type Violation struct {
	Seed      uint64
	Profile   string
	Invariant int
	Text      string
	History   string
}

// NewReport returns an empty report.
func NewReport() *Report { return &Report{Counts: map[string]map[string]int{}} }

// Count adds n to what is counted.
func (r *Report) Count(what, kind string, n int) {
	if r.Counts[what] == nil {
		r.Counts[what] = map[string]int{}
	}
	r.Counts[what][kind] += n
}

// Sum is all of what is counted.
func (r *Report) Sum(what string) (n int) {
	for _, x := range r.Counts[what] {
		n += x
	}
	return n
}

// Add adds another report.
func (r *Report) Add(o *Report) {
	r.Schedules += o.Schedules
	r.Virtual += o.Virtual
	r.Calls += o.Calls
	r.Entries += o.Entries
	for what, kinds := range o.Counts {
		for kind, n := range kinds {
			r.Count(what, kind, n)
		}
	}
	r.Broken = append(r.Broken, o.Broken...)
}

func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d schedules, %.1f virtual hours, %d faults, %d calls of functions, %d entries, %d violations\n", r.Schedules,
		r.Virtual.Hours(), r.Sum(Faults), r.Calls, r.Entries, r.Sum(Violations))
	for _, what := range slices.Sorted(maps.Keys(r.Counts)) {
		fmt.Fprintf(&b, "%s:", what)
		for _, kind := range slices.Sorted(maps.Keys(r.Counts[what])) {
			fmt.Fprintf(&b, " %s %d,", kind, r.Counts[what][kind])
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (v Violation) String() string {
	return fmt.Sprintf("invariant %d: %s\nreplay: HOLDFAST_SEED=%d HOLDFAST_PROFILE=%q HOLDFAST_SCHEDULES=1 go test -count=10 -failfast "+
		"-run 'TestSimulation$' ./internal/simulation (in client/locktest)\n%s", v.Invariant, v.Text, v.Seed, v.Profile, v.History)
}
