// SPDX-License-Identifier: Apache-2.0

package main

import (
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
	numbers  = "numbers"
)

// The numbers.
const (
	rounds  = "rounds"
	bad     = "rounds with violations"
	holds   = "holds"
	guarded = "rounds with a guard" // and in these
	entries = "holds in the storm"
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

// add adds what was counted in a round.
func (c counts) add(r *result) {
	for what, kinds := range r.counts {
		for kind, n := range kinds {
			c.count(what, kind, n)
		}
	}
	c.count(numbers, rounds, 1)
	c.count(numbers, bad, min(1, len(r.violations)))
}

func (c counts) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "\n%s\n", what)
		for _, k := range slices.Sorted(maps.Keys(c[what])) {
			fmt.Fprintf(&b, "  %7d %s\n", c[what][k], k)
		}
	}
	return b.String()
}

// String is a line for the round, and one for each violation, and for the file.
func (r *result) String() string {
	var b strings.Builder
	n := r.counts[numbers]
	fmt.Fprintf(&b, "%-22s %5d faults, %6d calls, %6d holds, %d meetings admitted",
		r.round.name(), r.sum(faults), r.sum(outcomes), n[holds], r.sum(admitted))
	if n[guarded] > 0 {
		fmt.Fprintf(&b, ", %d entries in the storm", n[entries])
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
