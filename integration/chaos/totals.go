package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// counts are what is counted in a round, and in all.
type counts struct {
	faults    map[string]int // by kind: those that could be done
	failed    map[string]int // those that could not
	admitted  map[string]int // meetings
	calls     map[string]int
	outcomes  map[string]int
	holds     int
	updates   int
	undecided int // porcupine did not end in time
	guarded   int // rounds with a guard, and in these:
	entries   int // holds in the storm
	losses    int // of a server's memory, while somebody was inside
}

func newCounts() counts {
	return counts{map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, 0, 0, 0, 0, 0, 0}
}

func (c *counts) maps() []map[string]int {
	return []map[string]int{c.faults, c.failed, c.admitted, c.calls, c.outcomes}
}

func (c *counts) numbers() []*int {
	return []*int{&c.holds, &c.updates, &c.undecided, &c.guarded, &c.entries, &c.losses}
}

func (c *counts) add(other *counts) {
	for i, m := range other.maps() {
		for k, n := range m {
			c.maps()[i][k] += n
		}
	}
	for i, n := range other.numbers() {
		*c.numbers()[i] += *n
	}
}

// String is a line for the round, and one for each violation and file.
func (r *result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-22s %5d faults, %6d calls, %6d holds, %6d updates, %d meetings admitted",
		r.round.name(), sum(r.faults), sum(r.calls), r.holds, r.updates, sum(r.admitted))
	if r.guarded > 0 {
		fmt.Fprintf(&b, ", %d entries in the storm, %d losses of memory with somebody inside", r.entries, r.losses)
	}
	if r.undecided > 0 {
		b.WriteString(", porcupine undecided")
	}
	const most = 10
	for _, v := range r.violations[:min(len(r.violations), most)] {
		fmt.Fprintf(&b, "\n  VIOLATION: %s", v)
	}
	if n := len(r.violations) - most; n > 0 {
		fmt.Fprintf(&b, "\n  and %d more", n)
	}
	for _, path := range r.kept {
		fmt.Fprintf(&b, "\n  kept: %s", path)
	}
	return b.String()
}

// totals are the sums of all rounds.
type totals struct {
	counts
	rounds, bad int
}

func (t *totals) add(r *result) {
	t.counts.add(&r.counts)
	t.rounds++
	if len(r.violations) > 0 {
		t.bad++
	}
}

// err says that there were violations.
func (t *totals) err() error {
	switch {
	case t.rounds == 0:
		return errors.New("no round was done")
	case t.bad > 0:
		return fmt.Errorf("%d of %d rounds have violations", t.bad, t.rounds)
	}
	return nil
}

func (t *totals) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d rounds, %d of them with violations; %d calls, %d holds, %d updates",
		t.rounds, t.bad, sum(t.calls), t.holds, t.updates)
	if t.undecided > 0 {
		fmt.Fprintf(&b, "; porcupine undecided in %d", t.undecided)
	}
	if t.guarded > 0 {
		fmt.Fprintf(&b, "\n%d rounds with a guard: %d entries in storms, %d losses of memory with somebody inside",
			t.guarded, t.entries, t.losses)
	}
	table := func(title string, m map[string]int) {
		if len(m) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%s: %d\n", title, sum(m))
		for _, k := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(&b, "  %7d %s\n", m[k], k)
		}
	}
	table("faults", t.faults)
	table("faults that could not be done, or not in whole", t.failed)
	table("meetings of two holders that the guarantees admit, by fault", t.admitted)
	table("calls by outcome", t.outcomes)
	return b.String()
}

func sum(m map[string]int) (n int) {
	for _, c := range m {
		n += c
	}
	return n
}
