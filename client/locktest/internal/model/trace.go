// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"
)

// Trace is the shortest way to a violation.
type Trace struct {
	Actions []Action
	Text    []string
	watched string // client 0, as Text calls it
}

func (t *Trace) String() string { return strings.Join(t.Text, "\n") }

// replay makes the actions one after the other and tells what happens. Clients keep their names,
// although they change places.
func (cfg *Config) replay(actions []Action) *Trace {
	t := &Trace{Actions: actions}
	s := cfg.first()
	names := [maxClients]string{"A", "B", "C"}
	for n, a := range actions {
		told := a.describe(&s, names[a.Client])
		possible, _ := cfg.apply(&s, a)
		if !possible {
			panic("model: a trace cannot be replayed: " + told)
		}
		moved := cfg.normalize(&s)
		before := names
		for from, to := range moved {
			names[to] = before[from]
		}
		t.Text = append(t.Text, fmt.Sprintf("%3d. %-52s %s", n+1, told, cfg.sketch(&s, names)))
	}
	t.watched = names[0]
	return t
}

// sketch is a state in one line.
func (cfg *Config) sketch(s *State, names [maxClients]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s ", s.Main.Lock.sketch(names))
	if s.Linger > 0 {
		fmt.Fprintf(&b, "(old: %s) ", s.Old.Lock.sketch(names))
	}
	if cfg.replicated() && s.Failed == 0 {
		fmt.Fprintf(&b, "(replica: %s) ", s.Replica.sketch(names))
	}
	holders := ""
	for i := range s.Clients[:cfg.Clients] {
		if c := &s.Clients[i]; c.Believes() {
			holders += fmt.Sprintf(" %s holds for %d", names[i], left(c.Lease))
			if c.Void != 0 {
				holders += " (broken)"
			}
		}
	}
	return b.String() + "|" + holders
}

func (l *Lock) sketch(names [maxClients]string) string {
	if l.Owner == 0 {
		return "free"
	}
	name := func(o Owner) string { return names[o.client()] + strings.Repeat("'", int(o.past())) }
	text := fmt.Sprintf("%s for %d, token %d", name(l.Owner), l.Rem, l.Fence)
	for _, w := range l.Line[:l.waiters()] {
		text += " <" + name(w.Owner)
	}
	return text
}
