// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"
	"time"
	"unicode"

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
	bottom := []string{m.problem(), m.keys()}
	if m.prompt.done != nil {
		bottom = strings.Split(ansi.Wrap(m.prompt.label+printable(m.prompt.text)+"_", m.width, ""), "\n")
	}
	lines := []string{m.summary(), ""}
	switch {
	case m.help:
		lines = append(lines, m.helping()...)
	case !m.looked:
		lines = append(lines, "looking ...")
	case m.name != "":
		lines = append(lines, m.waiters()...)
	case len(m.now.Locks) == 0 && m.filter.Waited:
		lines = append(lines, "nobody waits")
	case len(m.now.Locks) == 0:
		lines = append(lines, "no locks to show")
	default:
		lines = append(lines, m.list()...)
	}
	for len(lines) < m.height-len(bottom) {
		lines = append(lines, "")
	}
	lines = append(lines[:max(0, m.height-len(bottom))], bottom...)
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, m.width, "…")
	}
	return strings.Join(lines, "\n")
}

func (m model) helping() []string {
	table := terminal.Table{Painter: m.cfg.Painter}
	for _, k := range keys {
		table.Row(terminal.Cell{Text: k[0], Colour: terminal.Bold}, terminal.Cell{Text: k[1]})
	}
	return table.Lines()
}

func (m model) summary() string {
	bold := func(format string, args ...any) string {
		return m.cfg.Painter.Paint(terminal.Bold, fmt.Sprintf(format, args...))
	}
	least := ""
	if len(m.now.Errors) > 0 {
		least = "at least "
	}
	text := fmt.Sprintf("%s  %s%s held  %s waiting  %s hand-overs/s", m.cfg.Title, least, bold("%d", m.now.Held),
		bold("%d", m.now.Waiting), bold("%.1f", m.now.PerSecond))
	if m.looked {
		text += "  " + m.now.At.Local().Format(time.TimeOnly)
	}
	if m.looking && m.looked && m.filter != m.chosen { // a look at many locks takes seconds
		text += m.cfg.Painter.Paint(terminal.Yellow, "  looking ...")
	}
	if m.now.More {
		text += m.cfg.Painter.Paint(terminal.Yellow, fmt.Sprintf("  shown %d of %d locks: see --limit", len(m.now.Locks), m.now.Total))
	}
	if m.typed != "" {
		text += m.cfg.Painter.Paint(terminal.Yellow, "  only "+printable(m.typed))
	}
	if m.paused {
		text += m.cfg.Painter.Paint(terminal.Yellow, "  paused")
	}
	return text
}

func (m model) list() []string {
	table := terminal.Table{Painter: m.cfg.Painter}
	table.Head(append([]string{" "}, m.cfg.LockColumns.Titles...)...)
	all, place, room := m.now.Locks, m.place(), m.room()
	first := max(0, min(place-room/2, len(all)-room))
	for i, l := range all[first:min(len(all), first+room)] {
		mark := terminal.Cell{Text: " "}
		if first+i == place {
			mark = terminal.Cell{Text: ">", Colour: terminal.Bold}
		}
		table.Row(append([]terminal.Cell{mark}, m.cfg.LockCells(l)...)...)
	}
	table.Fit(m.width, m.cfg.LockColumns)
	return table.Lines()
}

func (m model) waiters() []string {
	var shown []string
	for _, l := range m.now.Locks {
		if l.Name == m.name {
			table := terminal.TableOf(m.cfg.Painter, m.cfg.LockColumns, []locks.Lock{l}, m.cfg.LockCells)
			table.Fit(m.width, m.cfg.LockColumns)
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
		return append(shown, m.cfg.Painter.Paint(terminal.Red, printable(m.lineErr.Error())))
	}
	if len(m.line.Waiters) == 0 {
		return append(shown, "nobody waits")
	}
	table := terminal.TableOf(m.cfg.Painter, m.cfg.WaiterColumns, m.line.Waiters, m.cfg.WaiterCells)
	table.Fit(m.width, m.cfg.WaiterColumns)
	return append(shown, table.Lines()...)
}

// problem is what happened last: to a break, or to a look.
func (m model) problem() string {
	switch {
	case m.said != "":
		return m.cfg.Painter.Paint(terminal.Yellow, printable(m.said))
	case len(m.now.Errors) > 0:
		return m.cfg.Painter.Paint(terminal.Red, "not complete: "+printable(strings.Join(m.now.Errors, "; ")))
	}
	return ""
}

// printable is a text in one line. What a user types, or a server says, may be anything.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

func (m model) keys() string {
	text := "? help  q quit  enter queue  / filter  s sort by " + string(m.nextOrder()) + "  w waited only  b break  p pause"
	if m.name != "" {
		text = "? help  q quit  esc back  b break  p pause"
	}
	return m.cfg.Painter.Paint(terminal.Dim, text)
}
