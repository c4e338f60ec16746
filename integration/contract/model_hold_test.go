package contract

import (
	"slices"

	"github.com/holdfast-go/holdfast/functions"
)

func (m *model) renew(w *world, c call) any {
	owner, fence, raise := c.arg(0), c.number(functions.OptFence), c.number(functions.OptRaise)
	m.settle(w, owner)
	mine := m.held && m.owner == owner && (fence == 0 || fence == m.fence || raise != 0 && raise == m.fence)
	if hold, asked := c.option(functions.OptHold); !mine || asked && !slices.Contains(m.holds, hold) {
		return m.disown(owner, fence)
	}
	m.confirm()
	if m.fence != 0 && raise > m.fence {
		m.granted = max(1, m.granted-(raise-m.fence))
		m.fence = raise
	}
	if m.fence == 0 {
		return token
	}
	return between{m.fence, m.fence}
}

func (m *model) release(w *world, c call) any {
	owner := c.arg(0)
	m.settle(w, owner)
	if !m.held || m.owner != owner {
		return m.disown(owner, 0)
	}
	hold, one := c.option(functions.OptHold)
	if !c.has(functions.OptAll) && one != (len(m.holds) > 0) {
		return hfjoin
	}
	at := slices.Index(m.holds, hold)
	switch {
	case one && at < 0:
		return []any{1, len(m.holds)}
	case one && len(m.holds) > 1:
		m.holds = slices.Delete(slices.Clone(m.holds), at, at+1)
		return []any{1, len(m.holds)}
	}
	m.floor = max(m.floor, min(m.fence+m.granted-1, c.number(functions.OptLast)))
	m.confirm()
	m.end(w, owner)
	if one {
		return []any{1, 0}
	}
	return 1
}

func (m *model) smash(w *world, c call) any {
	wanted, only := c.option(functions.OptOwner)
	running, owner, fence, channel := m.held && !m.ended, m.owner, m.fence, m.channel
	reason, _ := c.option(functions.OptReason)
	broken := (!only || wanted == owner) && (running || m.kept)
	if broken {
		if running && !c.has(functions.OptForget) {
			m.broken = &record{owner, reason, fence}
		}
		m.kept = false
		m.end(w, "")
	} else {
		m.settle(w, "")
	}
	if r := m.broken; r != nil && c.has(functions.OptForget) && (broken || !only || wanted == r.owner) {
		if !broken {
			broken, owner, fence, running = true, r.owner, r.fence, false
		}
		m.broken = nil
	}
	if !broken {
		return m.refuse()
	}
	if running && w.alive[channel] {
		m.told = append(m.told, tidings{channel: channel, text: "look " + owner})
	}
	return []any{1, owner, between{fence, fence}}
}

func (m *model) inspect() any {
	fence := any(between{m.fence, m.fence})
	if m.fence == 0 {
		fence = between{m.floor + 1, 1 << 53}
	}
	switch {
	case m.held && !m.ended:
		return []any{1, m.owner, max(1, len(m.holds)), fence, pttl, len(m.line), functions.WhyHeld}
	case m.kept:
		return []any{0, m.owner, 0, fence, pttl, len(m.line), functions.WhyKept}
	case len(m.line) > 0:
		return []any{0, "", 0, 0, 0, len(m.line), functions.WhyServing}
	}
	return free
}
