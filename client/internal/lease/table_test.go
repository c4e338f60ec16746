// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cell is what the table of the package's doc comment says of an event in a state.
type cell struct{ next, action string }

// table reads it.
func table(t *testing.T) map[string][]cell {
	t.Helper()
	source, err := os.ReadFile("lease.go")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(source), "//	event ")
	require.True(t, ok)
	text, _, ok = strings.Cut(text, "//\n// End is")
	require.True(t, ok)
	rows := map[string][]cell{}
	for _, line := range strings.Split(text, "\n")[1:] {
		fields := strings.Fields(strings.TrimPrefix(line, "//"))
		if len(fields) == 0 {
			continue
		}
		var row []cell
		for _, f := range fields[1:] {
			if action, ok := strings.CutPrefix(f, "["); ok {
				row[len(row)-1].action = strings.TrimSuffix(action, "]")
			} else {
				row = append(row, cell{next: strings.ToLower(f)})
			}
		}
		require.Len(t, row, int(Over)+1, line)
		rows[fields[0]] = row
	}
	require.Len(t, rows, 11)
	return rows
}
