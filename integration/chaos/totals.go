package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// String is a line for the round, and one for each violation and file.
func (r *result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-22s %5d faults, %6d calls, %6d holds, %6d updates, %d meetings admitted",
		r.round.name(), sum(r.faults), sum(r.calls), r.holds, r.updates, sum(r.admitted))
	if r.round.terms.guard > 0 {
		fmt.Fprintf(&b, ", %d entries in the storm, %d losses of memory with somebody inside",
			r.entries, r.losses)
	}
	if r.undecided {
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
	rounds, holds, updates, undecided, bad int
	guarded, entries, losses               int // of rounds with a guard
	faults, failed, admitted               map[string]int
	calls, outcomes                        map[string]int
}

func (t *totals) add(r *result) {
	if t.rounds == 0 {
		t.faults, t.failed, t.admitted = map[string]int{}, map[string]int{}, map[string]int{}
		t.calls, t.outcomes = map[string]int{}, map[string]int{}
	}
	t.rounds++
	t.holds += r.holds
	t.updates += r.updates
	if r.round.terms.guard > 0 {
		t.guarded++
		t.entries += r.entries
		t.losses += r.losses
	}
	if r.undecided {
		t.undecided++
	}
	if len(r.violations) > 0 {
		t.bad++
	}
	into(t.faults, r.faults)
	into(t.failed, r.failed)
	into(t.admitted, r.admitted)
	into(t.calls, r.calls)
	into(t.outcomes, r.outcomes)
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
		fmt.Fprintf(&b, "\n%d rounds with a guard: %d entries in storms, "+
			"%d losses of memory with somebody inside", t.guarded, t.entries, t.losses)
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

func into[K ~string](sums map[string]int, m map[K]int) {
	for k, n := range m {
		sums[string(k)] += n
	}
}

func sum[K comparable](m map[K]int) (n int) {
	for _, c := range m {
		n += c
	}
	return n
}
