package contract

import "slices"

func (m *model) place(owner string) int {
	return slices.IndexFunc(m.line, func(w waiter) bool { return w.owner == owner })
}

func (m *model) wait(w *world, c call) any {
	next := waiter{c.arg(0), c.arg(2), integerOr(c.arg(3), 1), setOf(c.arg(5))}
	m.settle(w, next.owner)
	subscribers := 0
	if w.alive[next.channel] {
		subscribers = 1
	}
	switch {
	case m.foreign:
		return append(m.busy(), anything, 0, subscribers)
	case !m.held:
		m.take(next)
		return m.yours(c.arg(1))
	case m.owner == next.owner:
		return m.holdOn(next, c.arg(1))
	}
	at := m.place(next.owner)
	if at < 0 {
		at = len(m.line)
		m.line = append(m.line, next)
	}
	if old := m.line[at]; (len(old.holds) > 0) != (len(next.holds) > 0) {
		return hfjoin
	}
	next.holds = union(slices.Clone(m.line[at].holds), next.holds)
	m.line[at] = next
	return []any{0, pttl, m.owner, at + 1, anything, m.knownFence(), subscribers}
}

func (m *model) knownFence() any {
	if m.fence == 0 {
		return token
	}
	return between{m.fence, m.fence}
}

// leave never names the right token: other tests do. Who names one asks about that, not about its place.
func (m *model) leave(w *world, owner, hold string, wrongFence bool) any {
	left := m.leaveLine(owner, hold) && !wrongFence
	m.settle(w, owner)
	if m.held && m.owner == owner && !wrongFence {
		if _, had := m.giveBackHold(w, hold, owner, 0); had {
			left = true
		}
	}
	if left {
		return []any{1}
	}
	return []any{0}
}

func (m *model) leaveLine(owner, hold string) bool {
	at := m.place(owner)
	if at < 0 {
		return false
	}
	id := slices.Index(m.line[at].holds, hold)
	switch {
	case id < 0 && (hold != "" || len(m.line[at].holds) > 0):
		return false
	case len(m.line[at].holds) > 1:
		m.line[at].holds = slices.Delete(slices.Clone(m.line[at].holds), id, id+1)
	default:
		m.line = slices.Delete(m.line, at, at+1)
	}
	return true
}
