// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/functions"
)

// slot is one of a lock that several may have. Without an owner a minimum keeps it taken; the zero
// value is a free one.
type slot struct {
	owner, channel string
	fence          int64 // 0: it has not been seen yet
	kept, due      bool
	ended          bool // the lease is over, or the minimum of nobody, and no call has found that yet
	provisional    bool
	ends           int64
}

func (s *slot) confirm() {
	s.kept, s.due, s.provisional = s.kept || s.due, false, false
}

// yours is what its owner is told.
func (s *slot) yours(m *model) any { return []any{1, s.token(m), m.number(s)} }

func (s *slot) token(m *model) any {
	if s.fence == 0 {
		return between{m.floor + 1, 1 << 53}
	}
	return between{s.fence, s.fence}
}

// number is that of a slot of this lock, from 1 on.
func (m *model) number(s *slot) int {
	return 1 + slices.IndexFunc(m.slots, func(o slot) bool { return o.owner == s.owner })
}

// slot returns that of an owner whose lease may have ended.
func (m *model) slot(owner string) *slot {
	for i := range m.slots {
		if owner != "" && m.slots[i].owner == owner {
			return &m.slots[i]
		}
	}
	return nil
}

// tokenOf returns the token of an owner, or else the highest.
func (m *model) tokenOf(owner string) int64 {
	if s := m.slot(owner); s != nil {
		return s.fence
	}
	return m.fence
}

// owners are those who have the lock, and the first in line; "a" stands for nobody.
func (m *model) owners() (all []string) {
	for _, s := range m.slots {
		if s.owner != "" {
			all = append(all, s.owner)
		}
	}
	if len(all) == 0 {
		all = []string{cmp.Or(m.owner, "a")}
	}
	if len(m.line) == 0 {
		return append(all, "a")
	}
	return append(all, m.line[0].owner)
}

// running reports whether somebody has the slot, and taken whether nobody else can get it.
func (s *slot) running() bool { return s.owner != "" && !s.ended }
func (s *slot) taken() bool   { return s.kept || s.running() }

func (m *model) taken() (n int) {
	for i := range m.slots {
		if m.slots[i].taken() {
			n++
		}
	}
	return n
}

// fits reports whether a request can have the lock beside those that have it.
func (m *model) fits(next waiter) bool {
	if m.held {
		return next.kind != "" && next.kind == m.kind && m.taken() < next.limit
	}
	return !m.kept
}

// enter gives the lowest slot to someone, with a token that is not known yet.
func (m *model) enter(next waiter) *slot {
	m.floor = max(m.floor, m.fence)
	if !m.held {
		m.take(waiter{})
	}
	m.kind, m.fence, m.forgot = next.kind, 0, false
	at := slices.IndexFunc(m.slots, func(s slot) bool { return !s.taken() })
	if at < 0 {
		at = len(m.slots)
		m.slots = append(m.slots, slot{})
	}
	m.slots[at] = slot{owner: next.owner, channel: next.channel}
	m.fresh = append(m.fresh, next.owner)
	return &m.slots[at]
}

// expire frees the slots whose leases are over, and with the last one the lock.
func (m *model) expire() {
	if m.kind == "" {
		return
	}
	for i := range m.slots {
		switch s := &m.slots[i]; {
		case !s.taken():
			*s = slot{}
		case !s.running() && s.owner != "":
			s.owner, s.channel, s.ended, s.due = "", "", false, false
		}
	}
	if m.taken() == 0 {
		m.floor = max(m.floor, m.fence)
		m.held, m.kind, m.slots = false, "", nil
	}
}

// noRaise is the answer to who would raise one of several tokens.
var noRaise = prefix("HFARG RAISE ")

func (m *model) renewSlot(c call, s *slot) any {
	fence := c.number(functions.OptFence)
	switch {
	case c.has(functions.OptRaise):
		return noRaise
	case c.has(functions.OptHold) || fence != 0 && fence != s.fence:
		return m.disown(s.owner, fence)
	}
	s.confirm()
	return s.token(m)
}

// smashSlots breaks one slot, or all. It returns what to say of that.
func (m *model) smashSlots(w *world, c call, wanted string) (broken bool, owner string, fence int64, running bool) {
	reason, _ := c.option(functions.OptReason)
	all, fence := !c.has(functions.OptOwner), m.fence
	var looks []tidings
	for i := range m.slots {
		s := &m.slots[i]
		if !all && (s.owner != wanted || !s.running()) {
			continue
		}
		if !all {
			owner, fence = wanted, s.fence
		}
		has := s.owner != "" && s.taken() // one whose minimum is all that is left hears it too
		broken, running = broken || s.taken(), running || has
		if has && w.alive[s.channel] {
			looks = append(looks, tidings{channel: s.channel, text: "look " + s.owner})
		}
		s.owner, s.kept = "", false
	}
	if running && !c.has(functions.OptForget) {
		m.broken = &record{owner, reason, fence, all}
	}
	m.settle(w, "")
	m.told = append(m.told, looks...)
	return broken, owner, fence, false
}

// holders is what holdfast_holders says.
func (m *model) holders() any {
	reply := []any{0}
	switch {
	case m.kind == "" && m.held && !m.ended:
		return append(reply, 1, m.owner, m.knownFence(), pttl)
	case m.kind == "" && m.kept:
		return append(reply, 1, "", anything, pttl)
	}
	for i := range m.slots {
		switch s := &m.slots[i]; {
		case s.running():
			reply = append(reply, i+1, s.owner, s.token(m), pttl)
		case s.kept:
			reply = append(reply, i+1, "", anything, pttl)
		}
	}
	return reply
}

// learnSlots notes the tokens of new slots: they grow in the order in which they were given.
func (p *player) learnSlots(m *model, holders any) {
	p.tb.Helper()
	last, entries := m.floor, holders.([]any)[1:]
	for ; m.kind != "" && len(entries) > 0; entries = entries[4:] {
		if s := &m.slots[entries[0].(int64)-1]; s.owner != "" {
			s.fence = entries[2].(int64)
		}
	}
	for _, owner := range m.fresh {
		if s := m.slot(owner); s != nil {
			if s.fence <= last {
				p.fail("slot %d has token %d after %d", m.number(s), s.fence, last)
			}
			last = s.fence
		}
	}
}

// checkSlots asserts that there are fields for the slots that are taken, and no others, and that
// no lease was cut short.
func (p *player) checkSlots(m *model, s seen, got any) {
	p.tb.Helper()
	r, refused := got.([]any)
	refused = refused && len(r) > 4 && r[0] == int64(0) && r[4] == m.kind
	taken, owners := 0, int64(0)
	for i := range m.slots {
		o := &m.slots[i]
		ends, is := s.slots[i+1]
		if is != o.taken() {
			p.fail("slot %d is %+v, and the key says %v", i+1, *o, s.slots)
		}
		if !is {
			continue
		}
		taken++
		if o.owner == "" {
			continue
		}
		owners++
		if remaining := ends - s.when; o.provisional != (remaining <= functions.ProvisionalTTL+1) {
			p.fail("the lease of slot %d has %d ms left; handed over just now: %v", i+1, remaining, o.provisional)
		}
		if o.ends > ends+2 {
			p.fail("the lease of slot %d was cut from %d to %d", i+1, o.ends, ends)
		}
		if refused && r[1].(int64) > ends-s.when+1000 {
			p.fail("who asks again after %d ms is late for slot %d, which ends in %d", r[1], i+1, ends-s.when)
		}
		o.provisional, o.ends = false, ends // look made it long
	}
	if taken != len(s.slots) || owners != s.slotOwners {
		p.fail("%d slots are taken by %d, and the key has %d of %d", taken, owners, len(s.slots), s.slotOwners)
	}
}

// endSlot makes the lease or the minimum of a slot end.
func (p *player) endSlot(lock, which int, what string) {
	p.tb.Helper()
	m := p.locks[lock]
	at := which % len(m.slots)
	s := &m.slots[at]
	if what == "lease" && !s.running() || what != "lease" && !s.kept && !s.due {
		return
	}
	p.note("the %s of slot %d of lock %d ends", what, at+1, lock)
	p.must(lock, "EVAL", slotPast, fmt.Sprint(at+1), what)
	if what == "lease" {
		s.ended = true
	} else {
		s.kept, s.due = false, false
		s.ended = s.ended || s.owner == ""
	}
	p.over(lock)
}
