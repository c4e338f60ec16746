// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColumnsFallAwayByWorth(t *testing.T) {
	columns := Columns{Titles: []string{"NAME", "HOLDER", "WAITERS"}, Worth: []string{"HOLDER", "GONE"}}
	for width, want := range map[int][]string{
		80: {"NAME      HOLDER  WAITERS", "order:42  web-42  3"},
		25: {"NAME      HOLDER  WAITERS", "order:42  web-42  3"},
		24: {"NAME      WAITERS", "order:42  3"},
		17: {"NAME      WAITERS", "order:42  3"},
		14: {"NAME   WAITERS", "orde…  3"},
		1:  {"…  WAITERS", "…  3"},
	} {
		var table Table
		table.Head(columns.Titles...)
		table.Row(Cells("order:42", "web-42", "3")...)
		table.Fit(width, columns)
		require.Equal(t, want, table.Lines(), width)
	}
}
