// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
)

// player plays calls on a server and on the model, and compares after each.
type player struct {
	*bed
	world
	sub      *conn
	channels []string
	played   int
	journal
}

// journal is the last that was done.
type journal struct{ log []string }

func (j *journal) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	j.log = append(j.log[max(0, len(j.log)-15):], text[:min(len(text), 400)])
}

func newPlayer(b *bed) *player {
	p := &player{bed: b, world: world{alive: map[string]bool{}}, sub: b.dial(2)}
	for i := range 3 {
		p.locks = append(p.locks, &model{key: b.key(fmt.Sprint("lock", i))})
	}
	for i := range 4 {
		p.channels = append(p.channels, b.key(fmt.Sprint("channel", i)))
	}
	p.listen(p.channels[0], true)
	p.listen(p.channels[1], true)
	return p
}

// play decodes and plays until the bytes are used up.
func (p *player) play(data []byte) {
	p.tb.Helper()
	s := source(data)
	for len(s) > 0 {
		switch kind := s.next(); {
		case kind < 12:
			p.endLease(s.next()%len(p.locks), s.next())
		case kind < 26:
			p.endMinimum(s.next()%len(p.locks), s.next())
		case kind < 28:
			p.endRecord(s.next() % len(p.locks))
		case kind < 34:
			ch := p.channels[s.next()%len(p.channels)]
			p.listen(ch, !p.alive[ch])
		case kind < 36:
			p.reload()
		case kind < 40:
			p.delete(s.next() % len(p.locks))
		default:
			c := s.call(len(p.locks), append(p.channels, "no such channel"))
			if p.step(c); c.function == functions.Finish {
				p.step(call{s.pick([]string{functions.Acquire, functions.Wait}), c.lock, []string{"@head", long, functions.OptValue}})
			}
		}
		p.played++
	}
}

func (p *player) fail(format string, args ...any) {
	p.tb.Helper()
	p.tb.Fatalf("after %d calls: %s\nthe last were:\n%s", p.played, fmt.Sprintf(format, args...), join(p.log))
}

// resolve puts the tokens and the holders of a lock in the place of what stands for them.
func resolve(c call, owners []string, fence func(owner string) int64, broken int64) call {
	c.args = slices.Clone(c.args)
	for i, arg := range c.args {
		switch arg {
		case "@first":
			c.args[i] = owners[0]
		case "@last":
			c.args[i] = owners[len(owners)-2]
		case "@head":
			c.args[i] = owners[len(owners)-1]
		case "@fence":
			c.args[i] = itoa(max(1, fence(c.args[0])))
		case "@next":
			c.args[i] = itoa(fence(c.args[0]) + 1)
		case "@broken":
			c.args[i] = itoa(max(1, broken))
		}
	}
	return c
}

// step makes one call and compares its reply, its messages, the key that it left, and what inspect
// says, with the model.
func (p *player) step(c call) {
	p.tb.Helper()
	m := p.locks[c.lock]
	floor, ends, fence := max(m.floor, m.fence), m.ends, m.fence
	broken := int64(0)
	if m.broken != nil {
		broken = m.broken.fence
	}
	c = resolve(c, m.owners(), m.tokenOf, broken)
	expected := p.expect(c)
	got, key, now, holders := p.run(c, m.key)
	p.note("lock %d: %s %.40q -> %s", c.lock, c.function, c.args, show(got))
	if f, bad := got.(failure); bad {
		expectNoTraceOfLua(p.tb, string(f))
	}
	if !matches(got, expected) {
		p.fail("got  %s\nwant %s", show(got), show(expected))
	}
	p.checkKey(m, key, got)
	if m.held && !m.ended && m.fence == fence && m.ends+2 < ends && m.ends != 0 {
		p.fail("the lease was cut from %d to %d", ends, m.ends)
	}
	if want := m.inspect(); !matches(now, want) {
		p.fail("inspect is %s\nwant %s", show(now), show(want))
	}
	if want := m.holders(); !matches(holders, want) {
		p.fail("the holders are %s\nwant %s", show(holders), show(want))
	}
	p.learn(m, got, now)
	p.learnSlots(m, holders)
	p.checkMessages(m, floor)
}

// run makes a call, looks at the key and inspects it.
func (p *player) run(c call, key string) (got any, s seen, now, holders any) {
	p.tb.Helper()
	p.c.send(append([]string{"FCALL", c.function, "1", key}, c.args...)...)
	p.c.send("EVAL", look, "1", key)
	p.c.send("FCALL", functions.Inspect, "1", key)
	p.c.send("FCALL", functions.Holders, "1", key)
	got, looked := p.c.receive(ioWithin), p.c.receive(ioWithin)
	now, holders = p.c.receive(ioWithin), p.c.receive(ioWithin)
	s, ok := parseLook(looked)
	if !ok {
		p.fail("%s: look: %s", c.function, show(looked))
	}
	return got, s, now, holders
}

// learn notes the token of a new holder, and how long its run is.
func (p *player) learn(m *model, got, now any) {
	p.tb.Helper()
	if (m.held && !m.ended || !m.held && m.kept) && m.fence == 0 {
		m.fence = now.([]any)[3].(int64)
	}
	switch g := got.(type) {
	case int64:
		if g > 1 && g != m.fence && m.kind == "" {
			p.fail("the reply says token %d, inspect %d", g, m.fence)
		}
	case []any:
		if len(g) == 3 && g[0] == int64(1) && m.held && m.kind == "" && len(m.holds) == 0 && g[1] == m.fence {
			m.granted = g[2].(int64)
		}
	}
}

// checkKey asserts that there is a key exactly if the model has a lock, with the TTL that README
// promises, with two fields for each waiter, and with a value only while it is kept.
func (p *player) checkKey(m *model, s seen, got any) {
	p.tb.Helper()
	m.ends = 0
	want := "none"
	if m.held || m.kept || m.broken != nil || len(m.line) > 0 {
		want = "hash"
	}
	if want == "none" && s.kind == "hash" && s.ends == 0 && s.ttl+s.remaining <= 2 {
		return // a run that was granted and given back by one call: its last token is ahead of the clock for a moment
	}
	if s.kind != want {
		p.fail("the key is a %s, not a %s", s.kind, want)
	}
	if s.kind != "none" && s.ttl <= 0 {
		p.fail("the key has no TTL: %d", s.ttl)
	}
	if s.kind != "hash" || m.ended || slices.ContainsFunc(m.slots, func(s slot) bool { return s.ended }) {
		return
	}
	p.checkSlots(m, s, got)
	value := int64(0)
	if m.finished() {
		value = int64(len("1500000000000000 " + *m.value))
	}
	if s.value != value && (m.held || m.kept) { // when its time is over it goes with the next write
		p.fail("%d bytes of a value are kept, not %d", s.value, value)
	}
	if m.held && m.kind == "" {
		if m.provisional != (s.remaining <= functions.ProvisionalTTL+1) {
			p.fail("the lease has %d ms left; handed over just now: %v", s.remaining, m.provisional)
		}
		m.provisional = false // look made it long
		m.ends = s.ends
	}
	slack := 20_000 * s.hasRow
	if s.ttl < s.expires-slack-1000*s.hasRow || s.ttl > s.expires+slack+s.longer {
		p.fail("the TTL ends at %d, not at %d", s.ttl, s.expires)
	}
	if n := int64(2 * len(m.line)); s.waiting != n || s.marks > n {
		p.fail("%d fields of waiters and %d of holes for %d", s.waiting, s.marks, len(m.line))
	}
}

// random plays bytes of a seed on a fresh set of locks.
func random(tb testing.TB, b *bed, seed uint64, n int) *player {
	tb.Helper()
	p := newPlayer(b)
	p.play(randomBytes(seed, n))
	return p
}
