package simulation

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Tally is the short form of a report, for one kind of schedule among others.
type Tally struct {
	Schedules, Faults, Calls, Entries, Violations int
	Virtual                                       time.Duration
}

func sum(m map[string]int) (n int) {
	for _, x := range m {
		n += x
	}
	return n
}

func (r *Report) tally() Tally {
	return Tally{r.Schedules, sum(r.Faults), r.Calls, r.Entries, sum(r.Violations), r.Virtual}
}

func (t Tally) plus(o Tally) Tally {
	return Tally{t.Schedules + o.Schedules, t.Faults + o.Faults, t.Calls + o.Calls, t.Entries + o.Entries,
		t.Violations + o.Violations, t.Virtual + o.Virtual}
}

// String is one line.
func (t Tally) String() string {
	return fmt.Sprintf("%d schedules, %.1f virtual hours, %d faults, %d calls, %d entries, %d violations",
		t.Schedules, t.Virtual.Hours(), t.Faults, t.Calls, t.Entries, t.Violations)
}

// Line is the report in one line.
func (r *Report) Line() string { return r.tally().String() }

func (r *Report) table(w io.Writer) {
	line := func(name string, cells ...any) {
		fmt.Fprintf(w, "%-22s", name)
		for _, c := range cells {
			fmt.Fprintf(w, " %12v", c)
		}
		fmt.Fprintln(w)
	}
	line("by deployment, level", "schedules", "virtual h", "faults", "calls", "entries", "violations")
	for _, k := range slices.Sorted(maps.Keys(r.By)) {
		t := r.By[k]
		line(k, t.Schedules, int(t.Virtual.Hours()), t.Faults, t.Calls, t.Entries, t.Violations)
	}
}
