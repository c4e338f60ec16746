// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"

	"github.com/holdfast-go/holdfast/functions"
)

func (m *model) place(owner string) int {
	return slices.IndexFunc(m.line, func(w waiter) bool { return w.owner == owner })
}

func (m *model) wait(w *world, c call) any {
	next := c.waiter()
	if at := m.place(next.owner); at >= 0 { // what it asks for now counts at its turn
		old := m.line[at]
		if (len(old.holds) > 0) != (len(next.holds) > 0) || old.kind != next.kind {
			return hfjoin
		}
		next.holds = union(old.holds, next.holds)
		m.line[at] = next
	}
	m.settle(w, next.owner)
	reply, mine := m.tryTake(next, c)
	if mine || reply == hfjoin {
		return reply
	}
	if done := m.done(c); done != nil {
		return done
	}
	position := 0
	if reply == nil || m.kind != "" {
		at := m.place(next.owner)
		if at < 0 {
			at = len(m.line)
			m.line = append(m.line, next)
		}
		m.guarded = m.guarded || c.guarded()
		if position = at + 1; reply == nil {
			reply = m.refuse()
		}
	}
	subscribers := 0
	if w.alive[next.channel] {
		subscribers = 1
	}
	r := slices.Clone(reply.([]any))
	r[3] = position
	return append(r, serverMS, m.knownFence(), subscribers)
}

func (m *model) knownFence() any {
	if !m.held && !m.kept && m.broken == nil && len(m.line) == 0 {
		return between{0, max(m.floor, m.fence)} // a reload has lowered the floor, and the key may have the token still
	}
	if m.fence == 0 {
		return token
	}
	return between{m.fence, m.fence}
}

func (m *model) leave(w *world, c call) any {
	owner, fence := c.arg(0), c.number(functions.OptFence)
	hold, one := c.option(functions.OptHold)
	left := !c.has(functions.OptFence) && m.unqueue(owner, hold, one)
	m.settle(w, "")
	if s := m.slot(owner); s != nil && (fence == 0 || fence == s.fence) && !one {
		*s, left = slot{}, true
		m.expire()
		m.serve(w, "")
	}
	if m.held && m.owner == owner && (fence == 0 || fence == m.fence) && one == (len(m.holds) > 0) {
		switch at := slices.Index(m.holds, hold); {
		case one && at < 0:
		case one && len(m.holds) > 1:
			m.holds, left = slices.Delete(slices.Clone(m.holds), at, at+1), true
		default:
			m.kept, left = false, true
			m.end(w, "")
		}
	}
	if left {
		m.tellNext(w, !m.held || m.kind != "", 1)
		return 1
	}
	return m.disown(owner, fence)
}

// unqueue takes a waiter, or one of its holds, out of the line.
func (m *model) unqueue(owner, hold string, one bool) bool {
	at := m.place(owner)
	if at < 0 || one != (len(m.line[at].holds) > 0) {
		return false
	}
	id := slices.Index(m.line[at].holds, hold)
	switch {
	case one && id < 0:
		return false
	case len(m.line[at].holds) > 1:
		m.line[at].holds = slices.Delete(slices.Clone(m.line[at].holds), id, id+1)
	default:
		m.line = slices.Delete(m.line, at, at+1)
	}
	return true
}
