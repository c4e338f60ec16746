// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

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

// String is a line for the round, and one for each violation, and for the file.
func (r *result) String() string {
	var b strings.Builder
	n := r.Counts[numbers]
	fmt.Fprintf(&b, "%-22s %5d faults, %6d calls, %6d holds, %d meetings admitted",
		r.round.name(), r.Sum(faults), r.Sum(outcomes), n[holds], r.Sum(admitted))
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
