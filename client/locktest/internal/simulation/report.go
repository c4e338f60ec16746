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
	Schedules  int
	Virtual    time.Duration
	LockTime   time.Duration // virtual time, times the locks that were held or waited for
	Idle       time.Duration // the part of LockTime in which one leader held a lock in peace
	CPU        time.Duration
	Calls      int // of functions
	Entries    int // Locks that were got
	Faults     map[string]int
	Admitted   map[string]int // overlaps and losses that the guarantees' table names, by the fault that admits them
	Checks     map[string]int // how often an invariant had something to check
	Errors     map[string]int // of calls, by kind
	Broken     []Violation
	Violations map[string]int   // by the invariant's number
	By         map[string]Tally // by deployment and level
	Digest     uint64           // of the events of the last schedule
}

// Violation is an invariant that did not hold.
type Violation struct {
	Seed      uint64
	Profile   string
	Invariant int
	Text      string
	History   string
}

// NewReport returns an empty report.
func NewReport() *Report {
	return &Report{Faults: map[string]int{}, Admitted: map[string]int{}, Checks: map[string]int{}, Errors: map[string]int{}, Violations: map[string]int{}, By: map[string]Tally{}}
}

// Add adds another report.
func (r *Report) Add(o *Report) {
	r.Schedules += o.Schedules
	r.Virtual += o.Virtual
	r.LockTime += o.LockTime
	r.Idle += o.Idle
	r.CPU += o.CPU
	r.Calls += o.Calls
	r.Entries += o.Entries
	add(r.Faults, o.Faults)
	add(r.Admitted, o.Admitted)
	add(r.Checks, o.Checks)
	add(r.Errors, o.Errors)
	add(r.Violations, o.Violations)
	for k, t := range o.By {
		r.By[k] = r.By[k].plus(t)
	}
	r.Broken = append(r.Broken, o.Broken...)
	if o.Digest != 0 {
		r.Digest = o.Digest
	}
}

func add(to, from map[string]int) {
	for k, n := range from {
		to[k] += n
	}
}

func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d schedules, %.1f virtual hours, %.1f lock hours (%.1f of them idle, %.1f contended or under faults)\n", r.Schedules,
		r.Virtual.Hours(), r.LockTime.Hours(), r.Idle.Hours(), (r.LockTime - r.Idle).Hours())
	fmt.Fprintf(&b, "%d calls of functions, %d entries\n", r.Calls, r.Entries)
	for _, part := range []struct {
		title string
		of    map[string]int
	}{{"faults", r.Faults}, {"admitted", r.Admitted}, {"checks", r.Checks}, {"errors", r.Errors}} {
		fmt.Fprintf(&b, "%s:", part.title)
		for _, k := range slices.Sorted(maps.Keys(part.of)) {
			fmt.Fprintf(&b, " %s %d,", k, part.of[k])
		}
		b.WriteString("\n")
	}
	if len(r.By) > 1 {
		r.table(&b)
	}
	return b.String()
}

func (v Violation) String() string {
	replay := fmt.Sprintf("HOLDFAST_SEED=%d ", v.Seed)
	if v.Profile != "" {
		replay += "HOLDFAST_PROFILE=" + v.Profile + " "
	}
	return fmt.Sprintf("invariant %d: %s\nreplay: %sgo test -count=1 -run 'TestReplay$' ./internal/simulation (in client/locktest)\n%s",
		v.Invariant, v.Text, replay, v.History)
}
