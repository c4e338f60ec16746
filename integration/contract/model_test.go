package contract

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast-go/holdfast/functions"
)

// waiter is one place in a line.
type waiter struct {
	owner, channel string
	block          int64
}

// model is what a lock should be. The zero value is a free one.
type model struct {
	key     string
	held    bool // also when ended, until a call finds that
	ended   bool
	foreign bool // a plain string of someone else
	owner   string
	channel string
	holds   []string
	line    []waiter

	provisional bool // handed over by the last call, and not confirmed

	block  int64
	fence  int64 // 0: a new holder, its token has not been seen yet
	floor  int64 // the next new token must be above
	forgot bool  // the library was loaded anew since the lock was taken

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

var pttl = between{0, functions.MaxTTL}

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

// expect changes the model as the call should change the lock, and returns what the call should reply.
func (w *world) expect(c call) any {
	m := w.locks[c.lock]
	m.told = nil
	if !c.valid() {
		return prefix("HFARG ")
	}
	owner := c.arg(0)
	switch c.function {
	case functions.Acquire:
		return m.acquire(w, c, "", integerOr(c.arg(2), 1))
	case functions.AcquireReentrant:
		return m.acquire(w, c, c.arg(2), 1)
	case functions.Renew:
		return m.renew(w, c)
	case functions.Release:
		return m.release(w, owner, c.arg(1), integerOr(c.arg(2), 1<<53))
	case functions.Wait:
		return m.wait(w, c)
	case functions.Leave:
		return m.leave(w, owner)
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

// take makes someone the holder, with a token that is not known yet.
func (m *model) take(owner, hold, channel string, block int64) {
	m.held, m.ended, m.forgot = true, false, false
	m.owner, m.holds, m.channel, m.block, m.fence = owner, []string{hold}, channel, block, 0
	m.provisional = false
}

// giveBack hands the lock to the first in line that can be told, or frees it.
func (m *model) giveBack(w *world) {
	m.floor = max(m.floor, m.fence+m.block-1)
	for len(m.line) > 0 {
		next := m.line[0]
		m.line = m.line[1:]
		if next.channel == "" || w.alive[next.channel] {
			m.take(next.owner, "", next.channel, next.block)
			m.provisional = true
			if next.channel != "" {
				m.told = append(m.told, tidings{channel: next.channel, grant: next.owner})
			}
			return
		}
	}
	m.held, m.ended = false, false
}

func (m *model) settle(w *world) {
	if m.held && m.ended {
		m.giveBack(w)
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

func (m *model) yours(ttl string) []any { return []any{1, token, number(ttl), len(m.holds)} }

func (m *model) holdOn(hold, ttl string) []any {
	m.provisional = false
	if !slices.Contains(m.holds, hold) {
		m.holds = append(m.holds, hold)
	}
	return m.yours(ttl)
}

func (m *model) acquire(w *world, c call, hold string, block int64) any {
	m.settle(w)
	switch {
	case m.foreign:
	case !m.held:
		m.take(c.arg(0), hold, "", block)
		return m.yours(c.arg(1))
	case m.owner == c.arg(0):
		return m.holdOn(hold, c.arg(1))
	}
	return m.busy()
}

func (m *model) renew(w *world, c call) any {
	mine := m.held && !m.ended && m.owner == c.arg(0)
	m.settle(w)
	if !mine {
		return m.busy()
	}
	if len(c.args) == 3 {
		m.channel = c.args[2]
	}
	return m.yours(c.arg(1))
}

func (m *model) release(w *world, owner, hold string, lastFence int64) any {
	mine := m.held && !m.ended && m.owner == owner
	m.settle(w)
	at := slices.Index(m.holds, hold)
	switch {
	case !mine:
		return m.busy()
	case at < 0:
		return []any{1, len(m.holds)}
	case len(m.holds) == 1:
		m.block = max(1, min(m.block, lastFence-m.fence+1))
		m.giveBack(w)
		return []any{1, 0}
	}
	m.holds = slices.Delete(m.holds, at, at+1)
	return []any{1, len(m.holds)}
}

func (m *model) place(owner string) int {
	return slices.IndexFunc(m.line, func(w waiter) bool { return w.owner == owner })
}

func (m *model) wait(w *world, c call) any {
	m.settle(w)
	next := waiter{c.arg(0), c.arg(2), integerOr(c.arg(3), 1)}
	switch {
	case m.foreign:
		return append(m.busy(), anything)
	case !m.held:
		m.take(next.owner, "", "", next.block)
		return m.yours(c.arg(1))
	case m.owner == next.owner:
		return m.holdOn("", c.arg(1))
	}
	at := m.place(next.owner)
	if at < 0 {
		at = len(m.line)
		m.line = append(m.line, next)
	}
	m.line[at] = next
	return []any{0, pttl, m.owner, at + 1, anything}
}

func (m *model) leave(w *world, owner string) any {
	waited := m.place(owner) >= 0
	m.settle(w)
	if m.held && m.owner == owner {
		m.giveBack(w)
		return []any{1}
	}
	if at := m.place(owner); at >= 0 {
		m.line = slices.Delete(m.line, at, at+1)
	}
	if waited {
		return []any{1}
	}
	return []any{0}
}

func (m *model) smash(w *world, reason string) any {
	if m.foreign {
		m.foreign = false
		return []any{1, theirs, 0}
	}
	if !m.held || m.ended {
		m.settle(w)
		return []any{0, "", 0}
	}
	owner, fence, channel := m.owner, m.fence, m.channel
	m.giveBack(w)
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
		return []any{1, m.owner, len(m.holds), between{m.floor + 1, 1 << 53}, pttl, len(m.line)}
	}
	return []any{1, m.owner, len(m.holds), between{m.fence, m.fence}, pttl, len(m.line)}
}
