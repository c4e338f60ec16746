// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"cmp"
	"slices"
	"strings"
)

// checkMessages reads all messages that were sent up to now: those of the last call and no others.
func (p *player) checkMessages(m *model, floor int64) {
	p.tb.Helper()
	got := p.messages()
	for i, news := range got {
		if news.text == "" || strings.HasPrefix(news.text, "look ") {
			continue
		}
		g := grant(p.tb, news.text)
		if s := m.slot(g.owner); s != nil {
			if g.fence != s.fence || g.tokens != int64(m.number(s)) || g.key != m.key {
				p.fail("granted %q, its slot is %+v", news.text, *s)
			}
			got[i] = tidings{channel: news.channel, grant: g.owner}
			continue
		}
		if g.fence <= floor && !m.forgot || g.fence != m.fence || g.tokens < 1 || g.tokens > m.tokens || g.key != m.key {
			p.fail("granted %q after %d and a run of %d, inspect says %d", news.text, floor, g.tokens, m.fence)
		}
		m.granted = g.tokens
		got[i] = tidings{channel: news.channel, grant: g.owner}
	}
	for _, all := range [][]tidings{got, m.told} { // several are told in the order of their slots
		slices.SortFunc(all, func(a, b tidings) int { return cmp.Or(cmp.Compare(a.grant, b.grant), cmp.Compare(a.text, b.text)) })
	}
	if !slices.Equal(got, m.told) {
		p.fail("messages %.200q\nwant %.200q", got, m.told)
	}
}

// messages returns what was published since the last look.
func (p *player) messages() (all []tidings) {
	p.tb.Helper()
	p.sub.send("PING")
	for {
		v, ok := p.sub.receive(ioWithin).([]any)
		if !ok || len(v) == 2 {
			return all
		}
		all = append(all, tidings{channel: v[1].(string), text: v[2].(string)})
	}
}

// must does something to a lock.
func (p *player) must(lock int, command string, args ...string) {
	p.tb.Helper()
	all := append([]string{command, p.locks[lock].key}, args...)
	if command == "EVAL" {
		all = append([]string{command, args[0], "1", p.locks[lock].key}, args[1:]...)
	}
	if f, bad := p.c.do(all...).(failure); bad {
		p.fail("%s: %s", command, f)
	}
}

// over lets a key go whose last reason to be there has ended.
func (p *player) over(lock int) {
	p.tb.Helper()
	m := p.locks[lock]
	if m.ended && !m.kept && m.broken == nil && len(m.line) == 0 {
		m.held, m.ended = false, false
	}
	if m.kind != "" && m.taken() == 0 && m.broken == nil && len(m.line) == 0 {
		m.held, m.kind, m.slots = false, "", nil
	}
	if m.held || m.kept || m.broken != nil || len(m.line) > 0 {
		return
	}
	p.must(lock, "PEXPIREAT", "1")
	m.owner, m.guarded, m.channel, m.holds, m.due = "", false, "", nil, false
	// the clock has not outlived a run: the lease was cut short by the test
	m.floor = max(m.floor, m.fence)
	if m.forgot {
		m.floor = 0
	}
}

// endLease makes a lease end: with more in the key it outlives it, else it goes.
func (p *player) endLease(lock, which int) {
	p.tb.Helper()
	m := p.locks[lock]
	if m.kind != "" {
		p.endSlot(lock, which, "lease")
		return
	}
	if !m.held || m.ended {
		return
	}
	p.note("the lease of lock %d ends", lock)
	if m.kept || m.broken != nil || len(m.line) > 0 {
		p.must(lock, "HSET", "until", "1")
		m.ended = true
		return
	}
	m.held = false
	p.over(lock)
}

// endMinimum prefers a lock that is only kept: nothing much happens to that.
func (p *player) endMinimum(lock, which int) {
	p.tb.Helper()
	if at := slices.IndexFunc(p.locks, func(m *model) bool { return m.kept && !m.held }); at >= 0 {
		lock = at
	}
	m := p.locks[lock]
	if m.kind != "" {
		p.endSlot(lock, which, "minimum")
		return
	}
	if !m.kept && !m.due {
		return
	}
	p.note("the minimum of lock %d ends", lock)
	p.must(lock, "EVAL", past, "minimum")
	m.kept, m.due = false, false
	p.over(lock)
}

func (p *player) endRecord(lock int) {
	p.tb.Helper()
	m := p.locks[lock]
	if m.broken == nil {
		return
	}
	p.note("the record of lock %d ends", lock)
	p.must(lock, "EVAL", past, "record")
	m.broken = nil
	p.over(lock)
}

func (p *player) delete(lock int) {
	p.tb.Helper()
	m := p.locks[lock]
	p.note("DEL of lock %d", lock)
	p.must(lock, "DEL")
	floor := max(m.floor, m.fence)
	if m.forgot {
		floor = 0
	}
	*m = model{key: m.key, floor: floor, fence: m.fence}
}

// reload loses the server's memory: what is promised then is only what the keys hold.
func (p *player) reload() {
	p.tb.Helper()
	p.note("FUNCTION LOAD REPLACE")
	p.load()
	for _, m := range p.locks {
		m.forgot = m.held
		if !m.held {
			m.floor = 0
		}
	}
}

func (p *player) listen(channel string, on bool) {
	p.tb.Helper()
	command, word := "SUNSUBSCRIBE", "sunsubscribe"
	if on {
		command, word = "SSUBSCRIBE", "ssubscribe"
	}
	p.note("%s %s", command, channel)
	want(p.tb, p.sub.do(command, channel), []any{word, channel, anything})
	p.alive[channel] = on
}
