package contract

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast-go/holdfast/functions"
)

// waiter is one place in a line. A plain one has no holds.
type waiter struct {
	owner, channel string
	block          int64
	holds          []string
}

// model is what a lock should be. The zero value is a free one.
type model struct {
	key     string
	held    bool // also when ended, until a call finds that
	ended   bool
	foreign bool // a plain string of someone else
	owner   string
	channel string
	holds   []string // of a joinable lock
	line    []waiter

	provisional bool // handed over by the last call, and not confirmed

	block   int64 // the longest run that was asked for
	granted int64 // what the last reply said of it
	fence   int64 // 0: a new holder, its token has not been seen yet
	floor   int64 // the next new token must be above
	ends    int64 // of the lease, as the last look saw it
	forgot  bool  // the library was loaded anew since the lock was taken

	floorBefore int64     // the last token before the last call
	told        []tidings // messages that the last call should have sent
}

// tidings is a message on a channel: a grant of this owner, or the exact text.
type tidings struct{ channel, grant, text string }

// world is all locks, and the channels that somebody listens to.
type world struct {
	locks []*model
	alive map[string]bool
}

const theirs = "theirs"

var (
	pttl   = between{0, functions.MaxTTL}
	hfjoin = prefix("HFJOIN ")
)

// call is one call as it is sent.
type call struct {
	function string
	lock     int
	args     []string
}

func (c call) arg(i int) string {
	if i < len(c.args) {
		return c.args[i]
	}
	return ""
}

// expect changes the model as the call should change the lock, and returns what the call should
// reply. An error changes nothing.
func (w *world) expect(c call) any {
	m := w.locks[c.lock]
	m.told = nil
	if !c.valid() {
		return prefix("HFARG ")
	}
	before := *m
	before.line, before.holds = slices.Clone(m.line), slices.Clone(m.holds)
	reply := m.expect(w, c)
	if reply == hfjoin {
		*m = before
	}
	return reply
}

func (m *model) expect(w *world, c call) any {
	switch c.function {
	case functions.Acquire:
		return m.acquire(w, c, "", integerOr(c.arg(2), 1))
	case functions.AcquireReentrant:
		return m.acquire(w, c, c.arg(2), 1)
	case functions.Renew:
		return m.renew(w, c)
	case functions.Raise:
		return m.raise(w, c)
	case functions.Release:
		return m.release(w, c.arg(0), c.arg(1), integerOr(c.arg(2), 0))
	case functions.Wait:
		return m.wait(w, c)
	case functions.Leave:
		return m.leave(w, c.arg(0), c.arg(1), len(c.args) == 3)
	case functions.Break:
		return m.smash(w, c.arg(0))
	}
	return m.inspect()
}

func integerOr(text string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return otherwise
}

func setOf(hold string) []string {
	if hold == "" {
		return nil
	}
	return []string{hold}
}

// take makes someone the holder, with a token that is not known yet.
func (m *model) take(next waiter) {
	m.held, m.ended, m.forgot = true, false, false
	m.owner, m.holds, m.channel, m.block, m.granted, m.fence = next.owner, next.holds, next.channel, next.block, 1, 0
	m.provisional = false
}

// giveBack hands the lock to the first in line that can be told or asks just now, or frees it.
func (m *model) giveBack(w *world, caller string) {
	m.floor = max(m.floor, m.fence)
	m.told = nil
	for len(m.line) > 0 {
		next := m.line[0]
		m.line = m.line[1:]
		if next.channel == "" || w.alive[next.channel] || next.owner == caller {
			m.take(next)
			m.provisional = true
			if next.channel != "" && next.owner != caller {
				m.told = append(m.told, tidings{channel: next.channel, grant: next.owner})
			}
			return
		}
	}
	m.held, m.ended = false, false
}

func (m *model) settle(w *world, caller string) {
	if m.held && m.ended {
		m.giveBack(w, caller)
	}
}

func (m *model) busy() []any {
	switch {
	case m.foreign:
		return []any{0, pttl, theirs, 0}
	case !m.held:
		return []any{0, 0, "", 0}
	}
	return []any{0, pttl, m.owner, len(m.line)}
}

func (m *model) yours(ttl string) []any {
	return []any{1, token, number(ttl), max(1, len(m.holds)), between{1, m.block}}
}

func (m *model) holdOn(next waiter, ttl string) any {
	if (len(m.holds) > 0) != (len(next.holds) > 0) {
		return hfjoin
	}
	m.provisional = false
	m.holds = union(m.holds, next.holds)
	m.block = max(m.block, next.block)
	if next.channel != "" {
		m.channel = next.channel
	}
	return m.yours(ttl)
}

func union(a, b []string) []string {
	for _, id := range b {
		if !slices.Contains(a, id) {
			a = append(a, id)
		}
	}
	return a
}

func (m *model) acquire(w *world, c call, hold string, block int64) any {
	next := waiter{c.arg(0), "", block, setOf(hold)}
	m.settle(w, next.owner)
	switch {
	case m.foreign:
	case !m.held:
		m.take(next)
		return m.yours(c.arg(1))
	case m.owner == next.owner:
		return m.holdOn(next, c.arg(1))
	}
	return m.busy()
}

func (m *model) renew(w *world, c call) any {
	m.settle(w, c.arg(0))
	if !m.held || m.owner != c.arg(0) || len(c.args) >= 4 && c.args[3] != strconv.FormatInt(m.fence, 10) ||
		len(c.args) == 5 && !slices.Contains(m.holds, c.args[4]) {
		return m.busy()
	}
	m.provisional = false
	if len(c.args) >= 3 {
		m.channel = c.args[2]
	}
	return m.yours(c.arg(1))
}

// raise is a renewal: tokens so low raise none.
func (m *model) raise(w *world, c call) any {
	return m.renew(w, call{function: functions.Renew, lock: c.lock, args: append(slices.Clone(c.args[:2]), c.args[3:]...)})
}

func (m *model) release(w *world, owner, hold string, lastFence int64) any {
	m.settle(w, owner)
	if !m.held || m.owner != owner {
		return m.busy()
	}
	left, had := m.giveBackHold(w, hold, owner, lastFence)
	if !had {
		left = max(1, left)
	}
	return []any{1, left}
}

// giveBackHold returns how many holds are left, and whether the one that is given back was there.
func (m *model) giveBackHold(w *world, hold, caller string, lastFence int64) (left int, had bool) {
	at := slices.Index(m.holds, hold)
	switch {
	case hold == allHolds:
	case at < 0 && (hold != "" || len(m.holds) > 0):
		return len(m.holds), false
	case len(m.holds) > 1:
		m.holds = slices.Delete(slices.Clone(m.holds), at, at+1)
		return len(m.holds), true
	}
	m.floor = max(m.floor, min(m.fence+m.granted-1, lastFence))
	m.giveBack(w, caller)
	return 0, true
}

func (m *model) smash(w *world, reason string) any {
	if m.foreign {
		m.foreign = false
		return []any{1, theirs, 0}
	}
	if !m.held || m.ended {
		m.settle(w, "")
		return []any{0, "", 0}
	}
	owner, fence, channel := m.owner, m.fence, m.channel
	m.giveBack(w, "")
	if w.alive[channel] {
		text := fmt.Sprintf("broken %d %d %s %s", fence, len(owner), owner, reason)
		m.told = append(m.told, tidings{channel: channel, text: text})
	}
	return []any{1, owner, between{fence, fence}}
}

func (m *model) inspect() any {
	switch {
	case m.foreign:
		return []any{1, theirs, 1, 0, pttl, 0}
	case !m.held:
		return []any{0, "", 0, 0, 0, 0}
	case m.ended:
		return []any{0, "", 0, 0, 0, len(m.line)}
	case m.fence == 0:
		return []any{1, m.owner, max(1, len(m.holds)), between{m.floor + 1, 1 << 53}, pttl, len(m.line)}
	}
	return []any{1, m.owner, max(1, len(m.holds)), between{m.fence, m.fence}, pttl, len(m.line)}
}
