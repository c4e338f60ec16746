// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/integration/oracle"
)

// Report is what one or several schedules did.
type Report struct {
	Schedules int
	Virtual   time.Duration
	Calls     int // of functions
	Entries   int // Locks that were got
	oracle.Counts
	Broken []Violation
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
func NewReport() *Report { return &Report{Counts: oracle.Counts{}} }

// Add adds another report.
func (r *Report) Add(o *Report) {
	r.Schedules += o.Schedules
	r.Virtual += o.Virtual
	r.Calls += o.Calls
	r.Entries += o.Entries
	r.Counts.Add(o.Counts)
	r.Broken = append(r.Broken, o.Broken...)
}

func (r *Report) String() string {
	return fmt.Sprintf("%d schedules, %.1f virtual hours, %d faults, %d calls of functions, %d entries, %d violations\n%v", r.Schedules,
		r.Virtual.Hours(), r.Sum(Faults), r.Calls, r.Entries, r.Sum(Violations), r.Counts)
}

func (v Violation) String() string {
	return fmt.Sprintf("invariant %d: %s\nreplay: HOLDFAST_SEED=%d HOLDFAST_PROFILE=%q HOLDFAST_SCHEDULES=1 go test -count=10 -failfast "+
		"-run 'TestSimulation$' ./internal/simulation (in client/locktest)\n%s", v.Invariant, v.Text, v.Seed, v.Profile, v.History)
}
