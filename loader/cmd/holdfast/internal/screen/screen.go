// SPDX-License-Identifier: Apache-2.0

// Package screen is the live view of locks on a whole terminal.
package screen

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

// Config says what is shown.
type Config struct {
	Title   string // the deployment
	Series  *locks.Series
	Filter  locks.Filter // to begin with; it has an order
	Every   time.Duration
	Painter terminal.Painter
	// how a lock and a waiter are shown
	LockColumns, WaiterColumns terminal.Columns
	LockCells                  func(locks.Lock) []terminal.Cell
	WaiterCells                func(locks.Waiter) []terminal.Cell
	// what is asked before a lock is broken, and what is said of it then
	Question func(locks.Lock) (text string, agrees func(answer string) bool)
	Outcome  func(seen locks.Lock, b locks.Broken) (text string, exitCode int)
}

// Run shows it until the user quits or the context ends; neither is an error.
func Run(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	m := model{cfg: cfg, ctx: ctx, filter: cfg.Filter, typed: cfg.Filter.Pattern}
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithoutSignalHandler()).Run()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// model is what is on the screen. Update is its only writer.
type model struct {
	cfg           Config
	ctx           context.Context
	width, height int
	filter        locks.Filter
	typed         string // the pattern, as the user typed it
	paused, help  bool
	looking       bool // a look is under way
	stale         bool // it is not what the user wants by now
	tick          int  // the last one that was asked for
	looked        bool // once at least
	now           locks.Look
	chosen        locks.Filter // that it looked by
	at            string       // the name of the lock that the cursor is at
	name          string       // the lock whose line is shown; "": the list is
	line          locks.Line
	lineErr       error
	prompt        prompt
	said          string // of the last break
}

type (
	lookMsg struct {
		look   locks.Look
		filter locks.Filter
		took   time.Duration
	}
	lineMsg struct {
		name string
		line locks.Line
		err  error
	}
	tickMsg int
)

func (m model) Init() tea.Cmd { return func() tea.Msg { return tickMsg(0) } }

func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.PasteMsg:
		m.prompt.text += msg.Content
	case tea.KeyPressMsg:
		if m.prompt.done != nil && msg.String() != "ctrl+c" {
			return m, m.answer(msg)
		}
		return m, m.key(msg.String())
	case tickMsg:
		if int(msg) == m.tick && !m.paused {
			return m, tea.Batch(m.look(), m.readLine())
		}
	case lookMsg:
		m.looking, m.looked = false, true
		if m.stale {
			return m, m.look()
		}
		place := m.place()
		m.now, m.chosen = msg.look, msg.filter
		m.arrange(place)
		m.tick++
		tick := tickMsg(m.tick)
		return m, tea.Tick(m.now.Pause(m.cfg.Every, msg.took), func(time.Time) tea.Msg { return tick })
	case lineMsg:
		if msg.name == m.name {
			m.line, m.lineErr = msg.line, msg.err
		}
	case askMsg:
		return m, m.ask(msg)
	case brokenMsg:
		m.said = string(msg)
		return m, tea.Batch(m.look(), m.readLine())
	}
	return m, nil
}

// look begins a look, or lets the one under way be followed by another one at once. There is one at a
// time.
func (m *model) look() tea.Cmd {
	if m.looking {
		m.stale = true
		return nil
	}
	m.looking, m.stale = true, false
	series, filter, ctx := m.cfg.Series, m.filter, m.ctx
	return func() tea.Msg {
		begun := time.Now()
		look := series.Look(ctx, filter)
		return lookMsg{look, filter, time.Since(begun)}
	}
}

const places = 200 // of a line, more than a screen has

func (m *model) readLine() tea.Cmd {
	if m.name == "" {
		return nil
	}
	name, view, ctx := m.name, m.cfg.Series.View, m.ctx
	return func() tea.Msg {
		line, err := view.Line(ctx, name, places)
		return lineMsg{name, line, err}
	}
}

var keys = [][2]string{
	{"up, down, pgup, pgdn", "choose a lock"},
	{"enter", "who waits for it"},
	{"esc", "back to all locks"},
	{"/", "only locks with this in their names; * ? [ ] make it a pattern"},
	{"w", "only locks with waiters"},
	{"s", "sort by waiters, age or name"},
	{"b", "break the lock: take it from its holder"},
	{"p", "pause"},
	{"?", "this help"},
	{"q", "quit"},
}

func (m *model) key(key string) tea.Cmd {
	m.said = ""
	if m.help && key != "ctrl+c" {
		m.help = false
		return nil
	}
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "?":
		m.help = true
	case "esc", "left", "h":
		m.name = ""
	case "/":
		m.name = ""
		m.prompt = prompt{label: "only locks with this in their names: ", text: m.typed, done: (*model).choose}
	case "s":
		m.filter.Order = m.nextOrder()
		locks.Sort(m.now.Locks, m.filter.Order)
		if !m.paused {
			return m.look()
		}
	case "w":
		m.filter.Waited = !m.filter.Waited
		return m.look()
	case "p", "space":
		m.paused = !m.paused
		if !m.paused {
			return m.look()
		}
	case "b":
		return m.beginBreak()
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-m.room())
	case "pgdown":
		m.move(m.room())
	case "enter", "right", "l":
		m.name, m.line, m.lineErr = m.at, locks.Line{}, nil
		return m.readLine()
	}
	return nil
}

func (m *model) nextOrder() locks.Order {
	return locks.Orders[(slices.Index(locks.Orders, m.filter.Order)+1)%len(locks.Orders)]
}

// choose shows only locks with the text in their names.
func (m *model) choose(text string) tea.Cmd {
	m.typed, m.filter.Pattern = text, text
	if text != "" && !strings.ContainsAny(text, "*?[") {
		m.filter.Pattern = "*" + locks.Literal(text) + "*"
	}
	return m.look()
}

// arrange keeps the cursor at its lock; if that is gone, at its place.
func (m *model) arrange(place int) {
	if m.place() < 0 {
		m.at = ""
		if all := m.now.Locks; len(all) > 0 {
			m.at = all[min(max(place, 0), len(all)-1)].Name
		}
	}
}

// place is the cursor's, -1 if its lock is not there.
func (m *model) place() int {
	return slices.IndexFunc(m.now.Locks, func(l locks.Lock) bool { return l.Name == m.at })
}

func (m *model) move(by int) {
	if all := m.now.Locks; len(all) > 0 && m.name == "" {
		m.at = all[min(max(m.place()+by, 0), len(all)-1)].Name
	}
}
