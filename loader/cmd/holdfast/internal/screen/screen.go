// Package screen is the live view of locks on a whole terminal.
package screen

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

// Config says what is shown.
type Config struct {
	Title   string // the deployment
	Every   time.Duration
	Painter terminal.Painter
	Look    func(context.Context) locks.Look // never called concurrently
	Line    func(ctx context.Context, name string, limit int) (locks.Line, error)
	// the columns of a lock and of a waiter, and their titles
	LockTitles, WaiterTitles []string
	LockCells                func(locks.Lock) []terminal.Cell
	WaiterCells              func(locks.Waiter) []terminal.Cell
}

// Run shows it until the user quits or the context ends; neither is an error.
func Run(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	m := model{cfg: cfg, ctx: ctx, order: byWaiters}
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithoutSignalHandler()).Run()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// order is how the locks are sorted.
type order string

const (
	byWaiters order = "waiters"
	byTime    order = "time"
	byName    order = "name"
)

var nextOrder = map[order]order{byWaiters: byTime, byTime: byName, byName: byWaiters}

// model is what is on the screen. Update is its only writer.
type model struct {
	cfg           Config
	ctx           context.Context
	width, height int
	order         order
	paused        bool
	waited        bool // only locks with waiters
	idle          bool // paused, and no tick is to come
	looked        bool // once at least
	now           locks.Look
	rows          []locks.Lock // as they are shown
	at            string       // the name of the lock that the cursor is at
	name          string       // the lock whose line is shown; "": the list is
	line          locks.Line
	lineErr       error
}

type (
	lookMsg struct {
		look locks.Look
		took time.Duration
	}
	lineMsg struct {
		name string
		line locks.Line
		err  error
	}
	tickMsg struct{}
)

func (m model) Init() tea.Cmd { return func() tea.Msg { return tickMsg{} } }

func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m.key(msg.String())
	case tickMsg:
		if m.paused {
			m.idle = true
			return m, nil
		}
		return m, tea.Batch(m.look, m.readLine())
	case lookMsg:
		m.looked, m.now = true, msg.look
		m.arrange()
		return m, tea.Tick(max(m.cfg.Every, locks.Rest*msg.took), func(time.Time) tea.Msg { return tickMsg{} })
	case lineMsg:
		if msg.name == m.name {
			m.line, m.lineErr = msg.line, msg.err
		}
	}
	return m, nil
}

func (m model) look() tea.Msg {
	begun := time.Now()
	look := m.cfg.Look(m.ctx)
	return lookMsg{look, time.Since(begun)}
}

const places = 200 // of a line, more than a screen has

func (m model) readLine() tea.Cmd {
	if m.name == "" {
		return nil
	}
	name, read, ctx := m.name, m.cfg.Line, m.ctx
	return func() tea.Msg {
		line, err := read(ctx, name, places)
		return lineMsg{name, line, err}
	}
}

func (m model) key(key string) (tea.Model, tea.Cmd) {
	switch key {
	case "q", "ctrl+c":
		return m, tea.Quit
	case "esc", "left", "h":
		m.name = ""
	case "s":
		m.order = nextOrder[m.order]
	case "w":
		m.waited = !m.waited
	case "p", "space":
		m.paused = !m.paused
		if m.idle && !m.paused {
			m.idle = false
			return m, m.Init()
		}
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
		return m, m.readLine()
	}
	m.arrange()
	return m, nil
}

// arrange makes the rows. The cursor stays at its lock; if that is gone, at its place.
func (m *model) arrange() {
	place := m.place()
	m.rows = nil
	for _, l := range m.now.Locks {
		if !m.waited || l.Waiters > 0 {
			m.rows = append(m.rows, l)
		}
	}
	slices.SortStableFunc(m.rows, func(a, b locks.Lock) int { // they come sorted by name
		switch m.order {
		case byWaiters:
			return cmp.Or(cmp.Compare(b.Waiters, a.Waiters), cmp.Compare(b.HeldMS, a.HeldMS))
		case byTime:
			return cmp.Compare(b.HeldMS, a.HeldMS)
		}
		return 0
	})
	if m.place() < 0 {
		m.at = ""
		if len(m.rows) > 0 {
			m.at = m.rows[min(max(place, 0), len(m.rows)-1)].Name
		}
	}
}

// place is the cursor's, -1 if its lock is not there.
func (m *model) place() int {
	return slices.IndexFunc(m.rows, func(l locks.Lock) bool { return l.Name == m.at })
}

func (m *model) move(by int) {
	if len(m.rows) > 0 && m.name == "" {
		m.at = m.rows[min(max(m.place()+by, 0), len(m.rows)-1)].Name
	}
}
