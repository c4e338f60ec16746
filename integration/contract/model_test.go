// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"

	"github.com/holdfast-go/holdfast/functions"
)

// waiter is one place in a line. A plain one has no holds, an exclusive one no kind.
type waiter struct {
	owner, channel string
	kind           string // the word of a refusal: WhyLimited, WhyShared
	limit          int
	tokens         int64
	minimum        bool
	holds          []string
}

// record is what a key remembers of a break.
type record struct {
	owner, reason string
	fence         int64
	all           bool // who had a token up to that one
}

// model is what a lock should be, as README.md says it. The zero value is a free one. The memory of
// the server is always too young for a guard. A plain string of someone else is no matter of it: see
// TestPlainStringIsALockOfSomeoneElse.
type model struct {
	key     string
	held    bool
	ended   bool   // the lease is over, and no call has found that yet
	kind    string // of a lock that several may have, while it is held
	slots   []slot // of such a lock
	owner   string
	channel string
	holds   []string // of a joinable lock
	line    []waiter
	guarded bool
	closed  bool    // by the guard, to the line that the last call found
	kept    bool    // nobody else gets it, whether it is held or not
	due     bool    // it will be kept when the grant is confirmed
	value   *string // what the last holder finished with, for as long as it is kept
	broken  *record

	provisional bool // handed over by the last call, and not confirmed

	tokens  int64 // the longest run that was asked for
	granted int64 // what the last reply said of it
	fence   int64 // the highest. 0: a new holder, its token has not been seen yet
	floor   int64 // the next new token must be above
	ends    int64 // of the lease, as the last look saw it
	forgot  bool  // the library was loaded anew since the lock was taken

	told  []tidings // messages that the last call should have sent
	fresh []string  // the owners of slots that it granted, in their order
}

// tidings is a message on a channel: a grant of this owner, or the exact text.
type tidings struct{ channel, grant, text string }

// world is all locks, and the channels that somebody listens to.
type world struct {
	locks []*model
	alive map[string]bool
}

// expect changes the model as the call should change the lock, and returns what the call should
// reply. An error changes nothing.
func (w *world) expect(c call) any {
	m := w.locks[c.lock]
	m.told, m.fresh, m.closed = nil, nil, false
	before := *m
	before.line, before.holds, before.slots = slices.Clone(m.line), slices.Clone(m.holds), slices.Clone(m.slots)
	reply := m.expect(w, c)
	if reply == hfjoin || reply == noRaise || reply == tooLong {
		*m = before
	}
	if !m.held && !m.kept && m.broken == nil && len(m.line) == 0 { // the key goes
		m.owner, m.guarded, m.channel, m.holds = "", false, "", nil
	}
	return reply
}

func (m *model) expect(w *world, c call) any {
	does := map[string]func(*world, call) any{functions.Acquire: m.acquire, functions.AcquireReentrant: m.acquire, functions.Renew: m.renew,
		functions.Release: m.release, functions.Wait: m.wait, functions.Finish: m.finish, functions.Leave: m.leave, functions.Break: m.smash,
		functions.Holders: func(*world, call) any { return m.holders() }}
	if f := does[c.function]; f != nil {
		return f(w, c)
	}
	return m.inspect()
}

// take makes someone the holder, with a token that is not known yet.
func (m *model) take(next waiter) {
	m.held, m.ended, m.forgot, m.kept, m.due, m.value = true, false, false, false, false, nil
	m.owner, m.holds, m.channel, m.tokens, m.granted, m.fence = next.owner, next.holds, next.channel, next.tokens, 1, 0
	m.provisional = false
}

// serve gives the lock to the first in line that fit and can be told or ask just now.
func (m *model) serve(w *world, caller string) {
	m.closed = m.guarded && len(m.line) > 0
	for !m.guarded && len(m.line) > 0 && m.fits(m.line[0]) {
		next := m.line[0]
		m.line = m.line[1:]
		if next.channel != "" && !w.alive[next.channel] && next.owner != caller {
			continue
		}
		if next.kind != "" {
			s := m.enter(next)
			s.provisional, s.due = true, next.minimum
		} else {
			m.take(next)
			m.provisional, m.due = true, next.minimum
		}
		if next.channel != "" && next.owner != caller {
			m.told = append(m.told, tidings{channel: next.channel, grant: next.owner})
		}
	}
}

// tellNext tells the first in line who hears, or the first of so many, when to ask, if nobody gets the lock yet.
func (m *model) tellNext(w *world, free bool, most int) {
	for _, next := range m.line {
		if free && most > 0 && w.alive[next.channel] {
			most, m.told = most-1, append(m.told, tidings{channel: next.channel, text: "look " + next.owner})
		}
	}
}

// end ends the lease, and serves the line.
func (m *model) end(w *world, caller string) {
	m.floor = max(m.floor, m.fence)
	m.held, m.ended, m.due, m.provisional, m.holds, m.told = false, false, false, false, nil, nil
	m.serve(w, caller)
}

// settle finds a lease that is over before anything else.
func (m *model) settle(w *world, caller string) {
	if m.held && m.ended {
		m.end(w, caller)
	}
	m.expire()
	m.serve(w, caller)
}

func (m *model) refuse() []any {
	switch {
	case m.kind != "" && m.closed:
		return []any{0, pttl, "", len(m.line), functions.WhySettling}
	case m.kind != "":
		return []any{0, pttl, "", len(m.line), m.kind}
	case m.held:
		return busy(m.owner, len(m.line))
	case m.kept:
		return []any{0, pttl, m.owner, len(m.line), functions.WhyKept}
	case len(m.line) > 0: // it is guarded
		return []any{0, pttl, "", len(m.line), functions.WhySettling}
	}
	return gone
}

// disown is a refusal of one that thinks that it has the lock.
func (m *model) disown(owner string, fence int64) []any {
	reply := slices.Clone(m.refuse())
	if r := m.broken; r != nil && (fence == r.fence || fence == 0 && owner == r.owner || r.all && fence < r.fence) {
		reply[4] = functions.WhyBroken
		if r.reason != "" {
			reply[4] = functions.WhyBroken + " " + r.reason
		}
	}
	return reply
}

func (m *model) yours(run bool) any {
	fence := any(token)
	if m.fence != 0 {
		fence = between{m.fence, m.fence}
	}
	switch {
	case len(m.holds) > 0:
		return []any{1, fence, len(m.holds)}
	case run:
		return []any{1, fence, between{1, m.tokens}}
	}
	return fence
}

func (m *model) confirm() {
	m.kept, m.due, m.provisional = m.kept || m.due, false, false
}

func (m *model) acquire(w *world, c call) any {
	next := c.waiter()
	m.settle(w, next.owner)
	reply, mine := m.tryTake(next, c)
	if mine || reply != nil {
		return reply
	}
	if done := m.done(c); done != nil {
		return done
	}
	return m.refuse()
}

// tryTake takes the lock if it is free, or holds on to it. It returns whether the lock is the
// caller's, and the reply if that is all.
func (m *model) tryTake(next waiter, c call) (reply any, mine bool) {
	s := m.slot(next.owner)
	switch {
	case s != nil && next.kind != m.kind || m.held && m.owner == next.owner && next.kind != "":
		return hfjoin, false
	case s != nil:
		m.guarded = m.guarded || c.guarded()
		s.confirm()
		if next.channel != "" {
			s.channel = next.channel
		}
		return s.yours(m), true
	case m.held && m.owner == next.owner:
		return m.holdOn(next, c)
	case len(m.line) > 0 || !m.fits(next):
	case m.guarded || c.guarded():
		return []any{0, pttl, "", 0, functions.WhySettling}, false
	case next.kind != "":
		s := m.enter(next)
		s.kept = next.minimum
		return s.yours(m), true
	default:
		m.take(next)
		m.kept = next.minimum
		return m.yours(c.has(functions.OptTokens)), true
	}
	return nil, false
}

func (m *model) holdOn(next waiter, c call) (any, bool) {
	if (len(m.holds) > 0) != (len(next.holds) > 0) {
		return hfjoin, false
	}
	holds := union(m.holds, next.holds)
	if len(holds) > len(m.holds) && (m.guarded || c.guarded()) {
		return []any{0, pttl, m.owner, len(m.line), functions.WhySettling}, false
	}
	m.guarded = m.guarded || c.guarded()
	m.confirm()
	m.holds, m.tokens = holds, max(m.tokens, next.tokens)
	if next.channel != "" {
		m.channel = next.channel
	}
	return m.yours(c.has(functions.OptTokens)), true
}

func union(a, b []string) []string {
	for _, id := range b {
		if !slices.Contains(a, id) {
			a = append(slices.Clone(a), id)
		}
	}
	return a
}
