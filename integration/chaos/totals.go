package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// counts are what is counted in a round, and in all: by what it is, and its kind.
type counts map[string]map[string]int

// What is counted by kinds. All else is in numbers.
const (
	faults   = "faults"
	failed   = "faults that could not be done, or not in whole"
	admitted = "meetings of two holders that the guarantees admit, by fault"
	outcomes = "calls by outcome"
	numbers  = ""
)

// The numbers.
const (
	holds   = "holds"
	updates = "updates"
	guarded = "rounds with a guard" // and in these:
	entries = "holds in the storm"
	losses  = "losses of a server's memory, while somebody was inside"
)

func (c counts) count(what, kind string, n int) {
	if c[what] == nil {
		c[what] = map[string]int{}
	}
	c[what][kind] += n
}

func (c counts) sum(what string) (n int) {
	for _, x := range c[what] {
		n += x
	}
	return n
}

// String is a line for the round, and one for each violation, and for the file.
func (r *result) String() string {
	var b strings.Builder
	n := r.counts[numbers]
	fmt.Fprintf(&b, "%-22s %5d faults, %6d calls, %6d holds, %6d updates, %d meetings admitted",
		r.round.name(), r.sum(faults), r.sum(outcomes), n[holds], n[updates], r.sum(admitted))
	if n[guarded] > 0 {
		fmt.Fprintf(&b, ", %d entries in the storm, %d losses of memory with somebody inside", n[entries], n[losses])
	}
	const most = 10
	for _, v := range r.violations[:min(len(r.violations), most)] {
		fmt.Fprintf(&b, "\n  VIOLATION: %s", v)
	}
	if n := len(r.violations) - most; n > 0 {
		fmt.Fprintf(&b, "\n  and %d more", n)
	}
	if r.kept != "" {
		fmt.Fprintf(&b, "\n  kept: %s", r.kept)
	}
	return b.String()
}

// totals are the sums of all rounds.
type totals struct {
	counts
	rounds, bad int
}

func (t *totals) add(r *result) {
	for what, kinds := range r.counts {
		for kind, n := range kinds {
			t.count(what, kind, n)
		}
	}
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
	n := t.counts[numbers]
	fmt.Fprintf(&b, "\n%d rounds, %d of them with violations; %d calls, %d holds, %d updates",
		t.rounds, t.bad, t.sum(outcomes), n[holds], n[updates])
	if n[guarded] > 0 {
		fmt.Fprintf(&b, "\n%d rounds with a guard: %d entries in storms, %d losses of memory with somebody inside",
			n[guarded], n[entries], n[losses])
	}
	for _, what := range []string{faults, failed, admitted, outcomes} {
		if len(t.counts[what]) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s: %d\n", what, t.sum(what))
		for _, k := range slices.Sorted(maps.Keys(t.counts[what])) {
			fmt.Fprintf(&b, "  %7d %s\n", t.counts[what][k], k)
		}
	}
	return b.String()
}
