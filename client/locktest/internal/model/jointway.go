package model

import "fmt"

// successors returns the states that follow one.
func (j *joined) successors(s *Shared, out []successor[Shared, Act]) []successor[Shared, Act] {
	for what := range whats {
		clients := maxClients
		if what.alone() {
			clients = 1
		}
		for i := range clients {
			x := successor[Shared, Act]{state: *s, action: Act{what, uint8(i)}}
			if j.apply(&x.state, x.action) {
				x.state.renumber()
				out = append(out, x)
			}
		}
	}
	return out
}

// Nobody waits for a joinable lock here.
func (j *joined) waits(*Shared) bool              { return false }
func (j *joined) urgent(*Shared, Act) bool        { return false }
func (j *joined) orderly(*Shared, Act, bool) bool { return false }

// replay does the acts one after the other and tells what happens.
func (j *joined) replay(acts []Act) *Trace[Act] {
	t := &Trace[Act]{Actions: acts}
	s := j.first()
	names := [maxClients]string{"A", "B", "C"}
	for n, a := range acts {
		told := whatNames[a.What]
		if !a.What.alone() {
			told += " " + names[a.Client]
		}
		if !j.apply(&s, a) {
			panic("model: a trace cannot be replayed: " + told)
		}
		s.renumber()
		text := fmt.Sprintf("%3d. %-40s %s, holds %02b; replica: %s, holds %02b |", n+1, told,
			s.Lock.sketch(names), s.Lock.Holds, s.Replica.sketch(names), s.Replica.Holds)
		for i := range s.Sharers {
			if c := &s.Sharers[i]; c.Phase == Held && c.Left > 0 {
				text += fmt.Sprintf(" %s holds for %d", names[i], c.Left)
			}
		}
		t.Text = append(t.Text, text)
	}
	return t
}
