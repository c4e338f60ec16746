// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Table has columns as wide as their longest cell. A cell's colour does not count.
type Table struct {
	Painter Painter
	rows    [][]Cell
}

// Cell is a text in a colour.
type Cell struct {
	Text   string
	Colour Colour
}

// Cells are texts without colours.
func Cells(texts ...string) []Cell {
	cells := make([]Cell, len(texts))
	for i, text := range texts {
		cells[i].Text = text
	}
	return cells
}

// Head adds the titles.
func (t *Table) Head(titles ...string) {
	cells := Cells(titles...)
	for i := range cells {
		cells[i].Colour = Dim
	}
	t.Row(cells...)
}

// Row adds a line.
func (t *Table) Row(cells ...Cell) { t.rows = append(t.rows, cells) }

// Columns are the columns of a table that fits its terminal.
type Columns struct {
	Titles []string
	Worth  []string // those that fall away when there is no room, the first one first
}

// TableOf has a row for each of them.
func TableOf[T any](p Painter, c Columns, all []T, cells func(T) []Cell) *Table {
	t := &Table{Painter: p}
	t.Head(c.Titles...)
	for _, one := range all {
		t.Row(cells(one)...)
	}
	return t
}

// Fit lets columns fall away until the lines are not longer than that, and then shortens the widest.
func (t *Table) Fit(width int, c Columns) {
	for _, title := range c.Worth {
		at := slices.IndexFunc(t.rows[0], func(head Cell) bool { return head.Text == title })
		if over(t.widths(), width) <= 0 || at < 0 {
			continue
		}
		for n, row := range t.rows {
			t.rows[n] = slices.Delete(row, at, at+1)
		}
	}
	wide := t.widths()
	if much := over(wide, width); much > 0 {
		at := slices.Index(wide, slices.Max(wide))
		for _, row := range t.rows {
			row[at].Text = ansi.Truncate(row[at].Text, max(1, wide[at]-much), "…")
		}
	}
}

const gap = 2 // between two columns

func over(wide []int, width int) int {
	all := gap * (len(wide) - 1)
	for _, w := range wide {
		all += w
	}
	return all - width
}

func (t *Table) widths() (wide []int) {
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], ansi.StringWidth(cell.Text))
		}
	}
	return wide
}

// Lines are the table's lines.
func (t *Table) Lines() []string {
	wide := t.widths()
	lines := make([]string, len(t.rows))
	for n, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(t.Painter.Paint(cell.Colour, cell.Text))
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", wide[i]-ansi.StringWidth(cell.Text)+gap))
			}
		}
		lines[n] = line.String()
	}
	return lines
}

// Print writes the lines.
func (t *Table) Print(w io.Writer) {
	for _, line := range t.Lines() {
		fmt.Fprintln(w, line)
	}
}
