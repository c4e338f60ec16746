package screen

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

const around = 5 // lines above and below the rows: summary, blank, titles; errors, keys

// room is how many rows there are place for.
func (m model) room() int { return max(1, m.height-around) }

// View draws the screen.
func (m model) View() tea.View {
	view := tea.NewView(m.draw())
	view.AltScreen, view.WindowTitle = true, "holdfast watch"
	return view
}

func (m model) draw() string {
	if m.width == 0 || m.height == 0 {
		return ""
	}
	lines := []string{m.summary(), ""}
	switch {
	case !m.looked:
		lines = append(lines, "looking ...")
	case m.name != "":
		lines = append(lines, m.waiters()...)
	case len(m.rows) == 0 && m.now.Total == 0:
		lines = append(lines, "no locks to show")
	case len(m.rows) == 0:
		lines = append(lines, fmt.Sprintf("nobody waits for any of %d locks", m.now.Total))
	default:
		lines = append(lines, m.list()...)
	}
	for len(lines) < m.height-2 {
		lines = append(lines, "")
	}
	lines = append(lines[:max(0, m.height-2)], m.problem(), m.keys())
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, m.width, "…")
	}
	return strings.Join(lines, "\n")
}

func (m model) summary() string {
	bold := func(format string, args ...any) string {
		return m.cfg.Painter.Paint(terminal.Bold, fmt.Sprintf(format, args...))
	}
	text := fmt.Sprintf("%s  %s held  %s waiting  %s hand-overs/s", m.cfg.Title, bold("%d", m.now.Held),
		bold("%d", m.now.Waiting), bold("%.1f", m.now.PerSecond))
	if m.looked {
		text += "  " + m.now.At.Local().Format(time.TimeOnly)
	}
	if m.now.More {
		text += m.cfg.Painter.Paint(terminal.Yellow, fmt.Sprintf("  shown %d of %d locks: see --limit", len(m.now.Locks), m.now.Total))
	}
	if m.paused {
		text += m.cfg.Painter.Paint(terminal.Yellow, "  paused")
	}
	return text
}

func (m model) list() []string {
	table := terminal.Table{Painter: m.cfg.Painter}
	table.Head(append([]string{" "}, m.cfg.LockTitles...)...)
	place, room := m.place(), m.room()
	first := max(0, min(place-room/2, len(m.rows)-room))
	for i, l := range m.rows[first:min(len(m.rows), first+room)] {
		mark := terminal.Cell{Text: " "}
		if first+i == place {
			mark = terminal.Cell{Text: ">", Colour: terminal.Bold}
		}
		table.Row(append([]terminal.Cell{mark}, m.cfg.LockCells(l)...)...)
	}
	return table.Lines()
}

func (m model) waiters() []string {
	var shown []string
	for _, l := range m.now.Locks {
		if l.Name == m.name {
			table := terminal.Table{Painter: m.cfg.Painter}
			table.Head(m.cfg.LockTitles...)
			table.Row(m.cfg.LockCells(l)...)
			shown = append(table.Lines(), "")
		}
	}
	if shown == nil {
		state := " is free"
		if m.now.More {
			state = " is free, or one of those that --limit leaves out"
		}
		shown = []string{m.cfg.LockCells(locks.Lock{Name: m.name})[0].Text + state, ""}
	}
	if m.lineErr != nil {
		return append(shown, m.cfg.Painter.Paint(terminal.Red, oneLine(m.lineErr.Error())))
	}
	if len(m.line.Waiters) == 0 {
		return append(shown, "nobody waits")
	}
	table := terminal.Table{Painter: m.cfg.Painter}
	table.Head(m.cfg.WaiterTitles...)
	for _, w := range m.line.Waiters {
		table.Row(m.cfg.WaiterCells(w)...)
	}
	return append(shown, table.Lines()...)
}

func (m model) problem() string {
	if len(m.now.Errors) == 0 {
		return ""
	}
	return m.cfg.Painter.Paint(terminal.Red, "not complete: "+oneLine(strings.Join(m.now.Errors, "; ")))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func (m model) keys() string {
	text := "q quit  up/down choose  enter line  s sort by " + string(nextOrder[m.order]) + "  w waited only  p pause"
	if m.name != "" {
		text = "q quit  esc back  p pause"
	}
	return m.cfg.Painter.Paint(terminal.Dim, text)
}
