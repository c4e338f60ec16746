// SPDX-License-Identifier: Apache-2.0

package functions_test

import (
	"fmt"
	"slices"
	"strings"
)

// tableOf returns the cells of the README's table of functions, by the function's name, without
// Markdown.
func tableOf(readme string) (rows map[string][]string, findings []string) {
	_, table, found := strings.Cut(readme, "\n| Function | KEYS | ARGV | Reply | Errors | Repeat |\n")
	if !found {
		return nil, []string{"README has no table of functions"}
	}
	rows = map[string][]string{}
	for _, line := range strings.Split(table, "\n")[1:] {
		if !strings.HasPrefix(line, "| ") {
			break
		}
		line = strings.ReplaceAll(line, `\|`, "\x00")
		var cells []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			cell = strings.TrimSpace(strings.ReplaceAll(cell, "\x00", "|"))
			if len(cell) > 1 && strings.Count(cell, "`") == 2 {
				cell = strings.Trim(cell, "`")
			}
			cells = append(cells, cell)
		}
		if rows[cells[0]] != nil {
			findings = append(findings, "README's table has two rows for "+cells[0])
		}
		rows[cells[0]] = cells[1:]
	}
	return rows, findings
}

// checkTable compares README's table and list of purposes with the comment blocks.
func checkTable(readme string, blocks []block) []string {
	rows, findings := tableOf(readme)
	unwrapped := strings.ReplaceAll(readme, "\n  ", " ")
	for _, b := range blocks {
		row := rows[b.name]
		delete(rows, b.name)
		if row == nil {
			findings = append(findings, "README's table has no row for "+b.name)
			continue
		}
		var want []string
		for _, label := range labels {
			want = append(want, b.lines[label])
		}
		if !slices.Equal(row, want) {
			findings = append(findings, fmt.Sprintf("README's table differs for %s:\n got %q\nwant %q", b.name, row, want))
		}
		if !strings.Contains(unwrapped, "\n- `"+b.name+"`: "+b.purpose+"\n") {
			findings = append(findings, "README's list of purposes differs for "+b.name+": "+b.purpose)
		}
	}
	for name := range rows {
		findings = append(findings, "README's table has a row for "+name+", which is not registered")
	}
	return findings
}
