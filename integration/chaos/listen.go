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

// listen reads until the process has no more to say.
func (l *listener) listen(from *bufio.Reader) error {
	for {
		text, err := from.ReadBytes('\n')
		if err != nil {
			return nil // a line that was cut is of a process that was killed
		}
		var m message
		if err := json.Unmarshal(text, &m); err != nil {
			return fmt.Errorf("%s said %q: %w", l.process, text, err)
		}
		l.hear(m)
	}
}

func (l *listener) hear(m message) {
	h := l.history
	if m.What == sayTrouble {
		h.trouble(wrong(m.Call, m.Lock, m.At, "%s: %s", l.process, m.Outcome))
		return
	}
	if m.What == sayFigures {
		l.figures <- *m.Figures
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch m.What {
	case sayReady:
		close(l.ready)
	case sayBye:
		l.bye = true
	case sayCycled:
		h.cycled[fmt.Sprintf("%s.%d", l.process, m.Worker)] = true
	case sayCall:
		c := &call{Process: l.process, ID: m.ID, Worker: m.Worker, Call: m.Call, Lock: m.Lock,
			Level: m.Level, Start: m.At, Limit: m.Limit}
		l.calls[m.ID] = c
		h.calls = append(h.calls, c)
	case sayReturn:
		c := l.calls[m.ID]
		c.Start, c.End, c.Outcome, c.Token = m.Start, m.At, m.Outcome, m.Token
		delete(l.calls, m.ID)
		h.record.write("call", c)
	case sayEnter:
		n := &hold{Who: fmt.Sprintf("%s.%d", l.process, m.Worker), Lock: m.Lock, Level: m.Level, Owner: m.Owner,
			Token: m.Token, Start: m.Start, Enter: m.At, Last: m.Last, End: forever, Why: "the process was killed"}
		l.holds[m.ID] = n
		h.holds = append(h.holds, n)
	case sayLive:
		l.holds[m.ID].Last = m.Last
	case sayLeave:
		n := l.holds[m.ID]
		n.Last, n.End, n.Why = m.Last, m.At, m.Outcome
		delete(l.holds, m.ID)
		h.record.write("hold", n)
	}
}

// end records what a process that is gone has left unfinished.
func (l *listener) end() {
	h := l.history
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range l.calls {
		h.record.write("call", c)
	}
	for _, n := range l.holds {
		h.record.write("hold", n)
	}
}
