// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
)

// listener puts what one process says into the history.
type listener struct {
	process string
	history *history
	calls   map[int64]*call
	holds   map[int64]*hold
	bye     bool
	ready   chan struct{} // closed when it is
	figures chan figures
}

// listen reads until the process has no more to say, and records what it has left unfinished.
func (l *listener) listen(from *bufio.Reader) error {
	for {
		text, err := from.ReadBytes('\n')
		if err != nil { // a line that was cut is of a process that was killed
			break
		}
		var m message
		if err := json.Unmarshal(text, &m); err != nil {
			return fmt.Errorf("%s said %q: %w", l.process, text, err)
		}
		l.hear(m)
	}
	for _, c := range l.calls {
		l.history.record.write("call", c)
	}
	for _, n := range l.holds {
		l.history.record.write("hold", n)
	}
	return nil
}

func (l *listener) hear(m message) {
	h := l.history
	switch {
	case m.Trouble != nil:
		m.Trouble.Text = l.process + ": " + m.Trouble.Text
		h.trouble(*m.Trouble)
		return
	case m.Figures != nil:
		l.figures <- m.Figures
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case m.Ready:
		close(l.ready)
	case m.Bye:
		l.bye = true
	case m.Cycled > 0:
		h.cycled[fmt.Sprintf("%s.%d", l.process, m.Cycled)] = true
	case m.Call != nil:
		h.calls = keep(l.calls, m.ID, m.Call, h.calls)
		if m.Call.End != 0 {
			delete(l.calls, m.ID)
			h.record.write("call", m.Call)
		}
	case m.Hold != nil:
		h.holds = keep(l.holds, m.ID, m.Hold, h.holds)
		if m.Hold.End != forever {
			delete(l.holds, m.ID)
			h.record.write("hold", m.Hold)
		}
	}
}

// keep puts what is said of something in the place of what was said of it before, or behind all others.
func keep[T any](open map[int64]*T, id int64, said *T, all []*T) []*T {
	if before := open[id]; before != nil {
		*before = *said
		return all
	}
	open[id] = said
	return append(all, said)
}
