// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var bold = regexp.MustCompile(`\*\*(.+?)\*\*`)

// excusing reports whether a cell of the page admits something, which it then says in bold.
func excusing(cell string) bool {
	return slices.ContainsFunc(bold.FindAllStringSubmatch(cell, -1), func(m []string) bool { return m[1] != "no second holder" })
}

// Each cause is in a row of docs/guarantees.md, and each cell that excuses something has a cause.
func TestTheTableIsThePage(t *testing.T) {
	text, err := os.ReadFile("../../docs/guarantees.md")
	require.NoError(t, err)
	found := map[string]int{}
	for _, part := range []struct {
		heading string
		levels  []Level
		row     func(excuse) string
	}{
		{"Clients and messages", []Level{Default}, func(excuse) string { return "" }},
		{"Servers", []Level{Default, Guarded, Replicas}, func(e excuse) string { return e.row }},
		{"A quorum", []Level{Quorum}, func(e excuse) string { return e.voting }},
	} {
		_, after, ok := strings.Cut(string(text), "\n## "+part.heading+"\n")
		require.True(t, ok, part.heading)
		after, _, _ = strings.Cut(after, "\n## ")
		for row := range strings.Lines(after) {
			cells := strings.Split(row, " | ")
			fault, isRow := strings.CutPrefix(cells[0], "| ")
			if !isRow || fault == "fault" || strings.HasPrefix(fault, "-") {
				continue
			}
			require.Len(t, cells, 2+len(part.levels), row)
			for i, level := range part.levels {
				admits := false
				for cause, e := range excuses {
					if start := part.row(e); start != "" && strings.HasPrefix(fault, start) {
						found[part.heading+start]++
						admits = admits || cause.Verdict(level) == Second || e.also&tokens != 0
					}
				}
				require.Equal(t, excusing(cells[1+i]), admits, "%s, at the level %s: the page, and the table", fault, level)
			}
		}
	}
	for cause, e := range excuses {
		require.NotZero(t, found["Servers"+e.row], "no such row: %s", e.row)
		if e.voting != "" || cause.Verdict(Quorum) > Nothing {
			require.NotZero(t, found["A quorum"+e.voting], "no such row of a quorum: %s", e.voting)
		}
	}
}
