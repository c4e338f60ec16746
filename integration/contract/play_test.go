package contract

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
)

// look reads how a call left a key: the end of its TTL, the end of the lease, what waiting fields
// there are, without and with the marks of holes. Then it makes a provisional lease long, so that
// none ends by itself before the model knows, and lets all who wait have asked just now.
const look = `
local v = redis.call('TYPE', KEYS[1]).ok
if v ~= 'hash' then return { v, redis.call('PEXPIRETIME', KEYS[1]), 0, 0, 0, 0 } end
local f = redis.call('HMGET', KEYS[1], 'until', 'state')
local ttl, ends, n, marks = redis.call('PEXPIRETIME', KEYS[1]), tonumber(f[1]), 0, 0
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if all[i]:find('^w:') and all[i + 1]:find('^[<>]') then
    marks = marks + 1
  elseif all[i]:find('^w:') then
    n = n + 1
    redis.call('HSET', KEYS[1], all[i], (all[i + 1]:gsub('^(%d+ %d+) %d+', '%1 ' .. string.format('%.0f', now))))
  elseif all[i]:find('^at:') then
    n = n + 1
  end
end
if ends > 1 and ends <= now + 2000 then
  redis.call('HSET', KEYS[1], 'until', now + 600000)
  redis.call('PEXPIREAT', KEYS[1], now + 600000 + (f[2] and not f[2]:find('^%d+ %d+ 0 ') and 60000 or 1))
end
return { v, ttl, ends, n, ends - now, marks }`

// player plays calls on a server and on the model, and compares after each.
type player struct {
	*bed
	world
	sub      *conn
	channels []string // without the empty one
	played   int
	log      []string // the last calls
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
		case kind < 16:
			p.endLease(p.locks[s.next()%len(p.locks)])
		case kind < 24:
			ch := p.channels[s.next()%len(p.channels)]
			p.listen(ch, !p.alive[ch])
		case kind < 26:
			p.reload()
		case kind < 30:
			p.setForeign(p.locks[s.next()%len(p.locks)])
		default:
			p.step(s.call(len(p.locks), append(p.channels, "", "", "no such channel")))
		}
		p.played++
	}
}

func (p *player) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.log = append(p.log[max(0, len(p.log)-15):], text[:min(len(text), 300)])
}

func (p *player) fail(format string, args ...any) {
	p.tb.Helper()
	p.tb.Fatalf("after %d calls: %s\nthe last were:\n%s", p.played, fmt.Sprintf(format, args...), join(p.log))
}

// step makes one call and compares its reply, its messages, the key that it left, and what inspect
// says.
func (p *player) step(c call) {
	p.tb.Helper()
	m := p.locks[c.lock]
	m.floorBefore = max(m.floor, m.fence)
	ends, fence := m.ends, m.fence
	expected := p.expect(c)
	p.c.send(append([]string{"FCALL", c.function, "1", m.key}, c.args...)...)
	p.c.send("EVAL", look, "1", m.key)
	p.c.send("FCALL", functions.Inspect, "1", m.key)
	got, key, now := p.c.receive(ioWithin), p.c.receive(ioWithin), p.c.receive(ioWithin)
	p.note("lock %d: %s %.40q -> %s", c.lock, c.function, c.args, show(got))
	if f, bad := got.(failure); bad {
		expectNoTraceOfLua(p.tb, string(f))
	}
	if !matches(got, expected) {
		p.fail("got  %s\nwant %s", show(got), show(expected))
	}
	p.checkKey(m, key)
	if m.held && !m.ended && len(m.holds) > 1 && m.fence == fence && m.ends < ends {
		p.fail("with %d holds the lease was cut from %d to %d", len(m.holds), ends, m.ends)
	}
	if want := m.inspect(); !matches(now, want) {
		p.fail("inspect is %s\nwant %s", show(now), show(want))
	}
	if m.held && !m.ended && m.fence == 0 {
		m.fence = now.([]any)[3].(int64)
	}
	if g, ok := got.([]any); ok && len(g) == 5 && g[0] == int64(1) {
		if g[1] != m.fence {
			p.fail("the reply says token %d, inspect %d", g[1], m.fence)
		}
		m.granted = g[4].(int64)
	}
	p.checkMessages(m)
	p.checkPositions(m)
}

// checkKey asserts that there is a key exactly if the model has a lock, with the TTL that README
// promises, and with two fields for each waiter.
func (p *player) checkKey(m *model, key any) {
	p.tb.Helper()
	v, ok := key.([]any)
	if !ok {
		p.fail("look: %s", show(key))
	}
	kind, ttl, ends, fields := v[0].(string), v[1].(int64), v[2].(int64), v[3].(int64)
	m.ends = 0
	want := "none"
	switch {
	case m.foreign:
		want = "string"
	case m.held:
		want = "hash"
	}
	if kind != want {
		p.fail("the key is a %s, not a %s", kind, want)
	}
	if kind != "none" && ttl <= 0 {
		p.fail("the key has no TTL: %d", ttl)
	}
	if kind != "hash" || m.ended {
		return
	}
	if left := v[4].(int64); m.provisional != (left <= functions.ProvisionalTTL) {
		p.fail("the lease has %d ms left; handed over just now: %v", left, m.provisional)
	}
	m.provisional = false // look made it long
	m.ends = ends
	if len(m.line) > 0 {
		ends += 60_000
	} else {
		ends++
	}
	if ttl != ends {
		p.fail("the TTL ends at %d, not at %d", ttl, ends)
	}
	if fields != int64(2*len(m.line)) || v[5].(int64) > fields {
		p.fail("%d fields of waiters and %d of holes for %d", fields, v[5], len(m.line))
	}
}

// checkMessages reads all messages that were sent up to now: those of the last call and no others.
func (p *player) checkMessages(m *model) {
	p.tb.Helper()
	var got []tidings
	last := m.floorBefore
	p.sub.send("PING")
	for {
		v, ok := p.sub.receive(ioWithin).([]any)
		if !ok || len(v) == 2 {
			break
		}
		text := v[2].(string)
		news := tidings{channel: v[1].(string), text: text}
		if !matches(text, prefix("broken ")) {
			g := grant(p.tb, text)
			if g.fence <= last || g.fence != m.fence || g.block < 1 || g.block > m.block {
				p.fail("granted with token %d after %d and a run of %d, inspect says %d", g.fence, last, g.block, m.fence)
			}
			m.granted = g.block
			news = tidings{channel: news.channel, grant: g.owner}
		}
		got = append(got, news)
	}
	if !slices.Equal(got, m.told) {
		p.fail("messages %.200q\nwant %.200q", got, m.told)
	}
	m.told = nil
}

// checkPositions asks for every waiter now and then; to ask again changes nothing.
func (p *player) checkPositions(m *model) {
	p.tb.Helper()
	if p.played%10 != 0 || !m.held || m.ended || m.foreign {
		return
	}
	for i, w := range m.line {
		args := []string{w.owner, long, w.channel, itoa(w.block)}
		if len(w.holds) > 0 {
			args = append(args, long, w.holds[0])
		}
		got := p.call(functions.Wait, m.key, args...)
		if !matches(got, []any{0, pttl, m.owner, i + 1, anything, between{m.fence, m.fence}, anything}) {
			p.fail("waiter %d of %d, %.40q: %s", i+1, len(m.line), w.owner, show(got))
		}
	}
}

// endLease makes a lease end: with a line the key outlives it, without one it goes.
func (p *player) endLease(m *model) {
	p.tb.Helper()
	if !m.held || m.ended {
		return
	}
	p.note("the lease of %s ends", m.key)
	if len(m.line) > 0 {
		p.end(m.key)
		m.ended = true
		return
	}
	want(p.tb, p.c.do("PEXPIREAT", m.key, "1"), 1)
	m.held = false
	// the clock has not outlived a run: the lease was cut short by the test
	m.floor = max(m.floor, m.fence)
	if m.forgot {
		m.floor = 0
	}
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

func (p *player) setForeign(m *model) {
	p.tb.Helper()
	if m.held || m.foreign {
		return
	}
	p.note("SET %s", m.key)
	want(p.tb, p.c.do("SET", m.key, theirs, "NX", "PX", long), "OK")
	m.foreign = true
}

func (p *player) listen(channel string, on bool) {
	p.tb.Helper()
	command := map[bool]string{true: "SSUBSCRIBE", false: "SUNSUBSCRIBE"}[on]
	p.note("%s %s", command, channel)
	want(p.tb, p.sub.do(command, channel), []any{wordOf[on], channel, anything})
	p.alive[channel] = on
}

var wordOf = map[bool]string{true: "ssubscribe", false: "sunsubscribe"}

// random plays bytes of a seed on a fresh set of locks.
func random(t *testing.T, b *bed, seed uint64, n int) *player {
	p := newPlayer(b)
	p.play(randomBytes(seed, n))
	t.Logf("seed %d: %d calls", seed, p.played)
	return p
}
