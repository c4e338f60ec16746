// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"

	"github.com/holdfast-go/holdfast/functions"
)

func (m *model) renew(w *world, c call) any {
	owner, fence, raise := c.arg(0), c.number(functions.OptFence), c.number(functions.OptRaise)
	if fence == 0 {
		m.settle(w, owner)
	} else { // a grant has another token
		m.settle(w, "")
	}
	if s := m.slot(owner); s != nil {
		return m.renewSlot(c, s)
	}
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
	hold, one := c.option(functions.OptHold)
	joins := one || c.has(functions.OptAll)
	s, mine := m.slot(owner), m.held && m.owner == owner
	switch {
	case s == nil && !mine, one && len(m.holds) == 0:
		return m.disown(owner, 0)
	case joins != (mine && len(m.holds) > 0):
		return hfjoin
	case s != nil:
		s.confirm()
		kept := s.kept
		s.ended = true
		m.expire()
		m.serve(w, owner)
		m.tellNext(w, kept, 1)
		return 1
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
	m.tellNext(w, m.kept, 1)
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
	if m.kind != "" {
		broken, owner, fence, running = m.smashSlots(w, c, wanted)
	} else if broken {
		if running && !c.has(functions.OptForget) {
			m.broken = &record{owner: owner, reason: reason, fence: fence}
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
	case m.taken() > 0:
		return []any{1, "", m.taken(), fence, pttl, len(m.line), m.kind}
	case m.held && !m.ended && m.kind == "":
		return []any{1, m.owner, max(1, len(m.holds)), fence, pttl, len(m.line), functions.WhyHeld}
	case m.kept:
		return []any{0, m.owner, 0, fence, pttl, len(m.line), functions.WhyKept}
	case len(m.line) > 0:
		return []any{0, "", 0, 0, 0, len(m.line), functions.WhyServing}
	}
	return free
}

// tooLong is the answer to who finishes with too much.
var tooLong = prefix("HFARG value must have 0 to 65536 bytes")

func (m *model) finish(w *world, c call) any {
	owner, value, fence := c.arg(0), c.arg(1), c.number(functions.OptFence)
	if len(value) > functions.MaxValue {
		return tooLong
	}
	m.settle(w, "")
	s := m.slot(owner)
	mine := m.held && m.owner == owner && (fence == 0 || fence == m.fence)
	switch {
	case s != nil && (fence == 0 || fence == s.fence), mine && len(m.holds) > 0:
		return hfjoin
	case !mine && m.finished() && m.owner == owner && (fence == 0 || fence == m.fence):
		return 1 // a repeat
	case !mine:
		return m.disown(owner, fence)
	}
	m.kept, m.value = true, &value
	m.end(w, "")
	m.tellNext(w, true, 3*steps)
	return 1
}

// finished reports whether there is a value for who asks.
func (m *model) finished() bool { return !m.held && m.kept && m.value != nil }

// done is what who asks for the value is told, if there is one. It takes him out of the line.
func (m *model) done(c call) []any {
	if !c.has(functions.OptValue) || !m.finished() {
		return nil
	}
	if at := m.place(c.arg(0)); at >= 0 {
		m.line = slices.Delete(m.line, at, at+1)
	}
	return []any{0, pttl, m.owner, len(m.line), functions.WhyDone, *m.value}
}
