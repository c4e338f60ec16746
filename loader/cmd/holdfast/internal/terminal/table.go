package terminal

import (
	"fmt"
	"io"
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

// Lines are the table's lines.
func (t *Table) Lines() []string {
	var wide []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], ansi.StringWidth(cell.Text))
		}
	}
	lines := make([]string, len(t.rows))
	for n, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(t.Painter.Paint(cell.Colour, cell.Text))
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", wide[i]-ansi.StringWidth(cell.Text)+2))
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
