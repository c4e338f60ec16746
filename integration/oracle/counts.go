// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Counts are what is counted in a round or a schedule, and in all: by what it is, and its kind.
type Counts map[string]map[string]int

// Count adds n to what is counted.
func (c Counts) Count(what, kind string, n int) {
	if c[what] == nil {
		c[what] = map[string]int{}
	}
	c[what][kind] += n
}

// Sum is all of what is counted.
func (c Counts) Sum(what string) (n int) {
	for _, x := range c[what] {
		n += x
	}
	return n
}

// Add adds what another one counted.
func (c Counts) Add(o Counts) {
	for what, kinds := range o {
		for kind, n := range kinds {
			c.Count(what, kind, n)
		}
	}
}

func (c Counts) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "\n%s\n", what)
		for _, k := range slices.Sorted(maps.Keys(c[what])) {
			fmt.Fprintf(&b, "  %7d %s\n", c[what][k], k)
		}
	}
	return b.String()
}
