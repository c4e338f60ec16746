// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// hostile is a user with the ACL of functions/README.md, for its own prefix, that writes whatever
// it likes into its keys. Others call functions on them, and have a lock of their own beside it.
type hostile struct {
	*bed
	user     *conn // the hostile one
	keys     []string
	channels []string
	victim   string // a lock that is held and waited for, of somebody else
	before   string // its content
	last     int64  // the last token of another lock of that somebody
	played   int
	journal
}

// mostInner is how many commands one call may execute: two for each place that it passes over or looks at
// for a position, three for each at the head, and some. Who finishes tells 300, and looks at twice as many places.
// A break of all looks up each holder, and tells it.
func mostInner(function string) int64 {
	more := map[string]int64{functions.Finish: 9 * steps, functions.Break: 2 * functions.MaxHolders}
	return 4*steps + 49 + more[function]
}

func newHostile(b *bed) *hostile {
	prefix := "hostile:" + b.run
	rules := []string{"+info"}
	for _, r := range aclLine(b.tb) {
		rules = append(rules, strings.ReplaceAll(r, "lock:*", prefix+":*"))
	}
	h := &hostile{bed: b, user: b.as(rules), keys: []string{prefix + ":a", prefix + ":b"}, victim: b.key("victim")}
	h.channels = []string{prefix + ":ch", prefix + ":ch2", prefix + ":ch3", "somebody's"}
	sub := b.dial(2)
	want(b.tb, sub.do("SSUBSCRIBE", h.channels[0]), []any{"ssubscribe", h.channels[0], 1})
	b.tb.Cleanup(func() { b.c.do(append([]string{"DEL"}, h.keys...)...) })
	b.take(h.victim, "holder", long)
	b.wait(h.victim, "waiter", "", 1)
	h.before = b.content(h.victim)
	return h
}

// Numbers that a careless reader takes for something else, or that leave no room for the next one.
var crafted = []string{"0", "1", "2", "3", "7", "100", "-1", "+5", "inf", "-inf", "nan", "0x10", "1e18", "1e3", "1.5", " 1", "1 ", "", "5\n", "00000000000000001",
	"9007199254740991", "9007199254740990", "9007199252740991", "9007199254740992", "9007199254740993", "4503599627370496", "4503599627370495",
	"9999999999999999", "99999999999999", "100000000000000", "18446744073709551616", strings.Repeat("9", 400), "1000000", "1000001", "31536000000"}

// number decodes a crafted number, or one that is near the server's time.
func (h *hostile) number(s *source) string {
	n := s.next()
	now := h.serverMS()
	switch n % 8 {
	case 0:
		return itoa(now*1000 + int64(n-128)*1_000_000) // a token within two minutes
	case 1:
		return itoa(now + int64(n-64)*100) // an end within seconds
	case 2, 3, 4:
		return itoa(int64(s.next() % 12))
	}
	return crafted[s.next()%len(crafted)]
}

// double decodes a number of the packed fields.
func (h *hostile) double(s *source) float64 {
	switch n := s.next(); n % 8 {
	case 0:
		return []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0.5, 1e18, 1 << 53, 1 << 52, 1e14, 1e300}[s.next()%10]
	case 1:
		x, _ := strconv.ParseFloat(h.number(s), 64)
		return x
	}
	return float64(s.next() % 5)
}

func (h *hostile) state(s *source) string {
	now := float64(h.serverMS())
	all := make([]float64, []int{6, 6, 6, 14, 14, 5}[s.next()%6])
	for i := range all {
		all[i] = h.double(s)
	}
	if s.next()%2 == 0 {
		all[4] = now*1000 + 1_000_000 // as top likely fits
	}
	text := doubles(all...)
	if len(all) == 14 && s.next()%2 == 0 { // a minimum or a record that is likely believed
		text = doubles(0, float64(s.next()%3), 1, 0, now*1000+1_000_000, now, float64(s.next()%2), 0, now+float64(s.next()*s.next()), 0, 30_000, 5,
			now+float64(s.next()), 2) + "no" + names[s.next()%5]
	}
	switch s.next() % 16 {
	case 0:
		return text[:len(text)/2]
	case 1:
		return text + strings.Repeat("x", s.next()*5)
	}
	return text
}

// entry decodes a waiter, a mark of a hole that may point anywhere, or a broken one of either.
func (h *hostile) entry(s *source) string {
	switch s.next() % 4 {
	case 0:
		return []string{">", "<", "=", ">-"}[s.next()%4] + h.number(s)
	case 1:
		return h.number(s)
	}
	w := waiting{ttl: 600_000, asked: float64(h.serverMS()), holds: h.holds(s), channel: h.channels[s.next()%4], owner: names[s.next()%len(names)]}
	if s.next()%4 == 0 {
		w.asked, w.minimum, w.tokens = h.double(s), h.double(s), h.double(s)
	}
	if s.next()%2 == 0 {
		w.tokens, w.holds = -[]float64{1, 2, 3, 1000, 1001, 1002, 0.5, 1e300}[s.next()%8], ""
	}
	text := entry(w)
	if s.next()%8 == 0 {
		text = text[:32] + string([]byte{byte(s.next()), byte(s.next()), byte(s.next()), byte(s.next())}) + text[36:]
	}
	return text
}

// crowd decodes who shares a lock, or the kind, the times or the slots of what is none.
func (h *hostile) crowd(s *source) string {
	now := float64(h.serverMS())
	text := doubles(float64(1+s.next()%2), now+float64(s.next()-128), now+float64(s.next()*100)) +
		[]string{"", "1", "11", "0111", "101", "x", "2", strings.Repeat("0", 1000), strings.Repeat("1", 1000), strings.Repeat("1", 1001)}[s.next()%10]
	switch s.next() % 8 {
	case 0:
		return doubles(h.double(s), h.double(s), h.double(s)) + text[24:]
	case 1:
		return text[:s.next()%len(text)]
	}
	return text
}

// slot decodes a holder of several.
func (h *hostile) slot(s *source) string {
	now := float64(h.serverMS())
	text := doubles(now+float64(s.next()*100-1000), now*1000, 0, 0, 600_000) + "\x02\x00ch" + names[s.next()%5]
	switch s.next() % 6 {
	case 0:
		return doubles(h.double(s), h.double(s), h.double(s), h.double(s), h.double(s)) + text[40:]
	case 1:
		return text[:s.next()%len(text)]
	case 2:
		return text[:40] + string([]byte{byte(s.next()), byte(s.next())}) + text[42:]
	}
	return text
}

func (h *hostile) holds(s *source) string {
	return []string{"", "2:h1", "2:h12:h2", "0:", "5:h1", "-1:h", "99999999999999999999:h1", "2:h1x", strings.Repeat("1:x", 129),
		strings.Repeat("64:"+strings.Repeat("h", 64), 128), strings.Repeat("0:", 4000), "h1"}[s.next()%12]
}

// value decodes what somebody has finished with, or has not.
func (h *hostile) value(s *source) string {
	token := []string{h.number(s), itoa(h.serverMS() * 1000), itoa(h.last), ""}[s.next()%4]
	return token + []string{" ", "", "  ", "\x00", " \x00\r\n", " " + strings.Repeat("1 ", functions.MaxValue)}[s.next()%6]
}

// field decodes the name of a field and a value for it.
func (h *hostile) field(s *source) (name, value string) {
	switch s.next() % 15 {
	case 0:
		return "owner", append(names, "", strings.Repeat("o", 600), "a\nb")[s.next()%(len(names)+3)]
	case 1:
		return "until", h.number(s)
	case 2:
		return "fence", h.number(s)
	case 3:
		return "channel", append(h.channels, strings.Repeat("c", 600))[s.next()%5]
	case 4, 5:
		return "state", h.state(s)
	case 6:
		return "holds", h.holds(s)
	case 7, 8:
		return "w:" + itoa(int64(s.next()%6)), h.entry(s)
	case 9:
		return "value", h.value(s)
	}
	switch s.next() % 4 {
	case 0:
		return "crowd", h.crowd(s)
	case 1:
		return "at:" + names[s.next()%5], "h" + h.number(s)
	case 2:
		return "at:" + names[s.next()%len(names)], h.number(s)
	}
	return "h:" + itoa(int64(s.next()%6)), h.slot(s)
}

// write does one hostile write and returns its command.
func (h *hostile) write(s *source) []string {
	key := h.keys[s.next()%2]
	switch s.next() % 20 {
	case 0:
		return []string{"DEL", key}
	case 1:
		return []string{"SET", key, names[s.next()%5]}
	case 2:
		return []string{"PEXPIREAT", key, itoa(h.serverMS() + int64(s.next()))}
	case 3, 4:
		name, _ := h.field(s)
		return []string{"HDEL", key, name}
	case 5, 6, 7: // a lock that is nearly whole, so that the rest of it is believed
		now := h.serverMS()
		_, _ = h.c.do("DEL", key).(int64)
		command := []string{"HSET", key, "fence", itoa(now * 1000), "state", h.state(s), "value", itoa(now*1000) + " v"}
		if s.next()%2 == 0 {
			command = append(command, "owner", names[s.next()%5], "until", itoa(now+int64(s.next())-128))
		} else {
			command = append(command, "until", "0", "crowd", h.crowd(s))
		}
		for i := range 6 {
			command = append(command, fmt.Sprint("w:", i), h.entry(s), fmt.Sprint("h:", i), h.slot(s), "at:"+names[i], fmt.Sprint("h", i))
		}
		return command
	}
	name, value := h.field(s)
	return []string{"HSET", key, name, value}
}

// play writes and calls until the bytes are used up.
func (h *hostile) play(data []byte) {
	h.tb.Helper()
	s := source(data)
	for len(s) > 0 {
		if h.played++; s.next()%2 == 0 {
			command := h.write(&s)
			c := h.user
			if command[0] == "SET" { // not in the ACL: another service's
				c = h.c
			}
			h.note("%.60q", command)
			if f, bad := c.do(command...).(failure); bad && !matches(f, prefix("WRONGTYPE ")) {
				h.tb.Fatalf("%.80q: %s", command, f)
			}
			continue
		}
		c := h.user
		if s.next()%3 == 0 {
			c = h.c
		}
		call := s.call(2, h.channels[:3])
		call = resolve(call, []string{"a", "b", "c"}, func(string) int64 { return h.last }, h.last)
		h.step(c, call)
		if h.played%16 == 0 {
			h.checkOthers()
		}
	}
	h.checkOthers()
}

var allowed = regexp.MustCompile(`^HF(ARG|FULL|JOIN|OPTION|TYPE) `)

// step makes one call, whose reply must be one of the contract, and counts what it executed.
func (h *hostile) step(c *conn, call call) {
	h.tb.Helper()
	h.c.do("CONFIG", "RESETSTAT")
	got := c.fcall(call.function, h.keys[call.lock], call.args...)
	h.note("%s %d %.40q -> %s", call.function, call.lock, call.args, show(got))
	if f, bad := got.(failure); bad && (!allowed.MatchString(string(f)) || luaTrace.MatchString(string(f))) {
		h.tb.Fatalf("%s\nthe last were:\n%s", f, join(h.log))
	}
	calls := h.stats()
	delete(calls, "config|resetstat")
	total := int64(0)
	for n := range maps.Values(calls) {
		total += n
	}
	if total > mostInner(call.function) {
		h.tb.Fatalf("one call executed %v\nthe last were:\n%s", calls, join(h.log))
	}
}

// checkOthers asserts that the locks of others are as they were, and that their tokens grow and
// are the clock's.
func (h *hostile) checkOthers() {
	h.tb.Helper()
	if now := h.content(h.victim); now != h.before {
		h.tb.Fatalf("somebody else's lock is %s\nand was %s\nthe last were:\n%s", now, h.before, join(h.log))
	}
	k := h.victim + "2"
	h.c.do("DEL", k)
	fence := h.take(k, "other", long)
	if most := (h.serverMS() + 1) * 1000; fence <= h.last || fence > most {
		h.tb.Fatalf("somebody else's token is %d after %d, at most it may be %d\nthe last were:\n%s", fence, h.last, most, join(h.log))
	}
	h.last = fence
	want(h.tb, h.call(functions.Release, k, "other"), 1)
}

// Nothing that a user writes into its own keys makes a call fail in Lua, blocks the server, or
// touches the locks of others.
func TestHostileWriter(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		h := newHostile(b)
		h.play(randomBytes(uint64(b.serverMS()), 60_000))
		t.Logf("%d writes and calls", h.played)
	}, server.Owned())
}
