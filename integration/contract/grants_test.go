// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"cmp"
	"encoding/binary"

	"github.com/holdfast-go/holdfast/functions"
)

// asked rewrites when the waiter at a place of the line asked last, in milliseconds from now.
func (b *bed) asked(key string, place int64, ms int64) {
	b.tb.Helper()
	name := "w:" + itoa(place)
	entry := b.c.do("HGET", key, name).(string)
	want(b.tb, b.c.do("HSET", key, name, entry[:16]+doubles(float64(b.serverMS()+ms))+entry[24:]), 0)
}

// Behind a lock that is held for long, each join drops the dead among the first three: no
// subscriber, and silent for five seconds.
func sweepsHead(b *bed, k string) {
	ch := b.key("channel")
	b.subscribe(ch)
	b.take(k, "a", long)
	line := []struct {
		owner, channel string
		silent         bool
	}{{"dead1", "nobody", true}, {"listens", ch, true}, {"fresh", "nobody", true}, {"dead2", "", true}, {"dead3", "nobody", true}}
	for i, w := range line {
		b.wait(k, w.owner, w.channel, i+1)
		if w.silent {
			b.asked(k, int64(i), -functions.PollTTL-1000)
		}
	}
	b.wait(k, "fresh", "nobody", 3)                      // asks again
	want(b.tb, b.c.do("HSET", k, "fence", "1000000"), 0) // held for long
	want(b.tb, b.call(functions.Wait, k, "new1", long, functions.OptChannel, ch), []any{0, left, "a", 5, functions.WhyHeld, serverMS, 1000000, 1})
	want(b.tb, b.call(functions.Wait, k, "new2", long), []any{0, left, "a", 5, functions.WhyHeld, serverMS, 1000000, 0})
	// a hole is a place
	want(b.tb, b.call(functions.Wait, k, "new3", long), []any{0, left, "a", 6, functions.WhyHeld, serverMS, 1000000, 0})
	b.expectNoTrace(k, 6)
	for i, owner := range []string{"listens", "fresh", "dead3", "new1", "new2", "new3"} {
		got := b.call(functions.Wait, k, owner, long, functions.OptChannel, ch)
		want(b.tb, got, []any{0, left, "a", i + 1, functions.WhyHeld, serverMS, 1000000, 1})
	}
}

// A mark of a hole never points back: else the calls would go round in it for ever.
func marksPointForward(b *bed, k string) {
	for _, mark := range []string{">0", ">3", ">2", "<0", ">9", ">99999999999999999999", ">0x9", ">"} {
		want(b.tb, b.c.do("HSET", k, "owner", "a", "until", far, "fence", "5", "state", doubles(0, 9, 5, 0, 5, 0), "w:3", mark,
			"w:8", entry(waiting{owner: "b"}), "at:b", "8"), 7)
		want(b.tb, b.call(functions.Wait, k, "b", long), []any{0, anything, "a", 1, functions.WhyHeld, serverMS, 5, 0})
		want(b.tb, b.call(functions.Release, k, "a"), 1)
		want(b.tb, b.call(functions.Release, k, "b"), 1)
		b.expectFree(k)
	}
}

// waiting is an entry of the line, as the library packs it.
type waiting struct {
	ttl, tokens, asked, minimum float64
	holds, channel, owner       string
}

func entry(w waiting) string {
	w.ttl, w.tokens = cmp.Or(w.ttl, 1000), cmp.Or(w.tokens, 1)
	text := []byte(doubles(w.ttl, w.tokens, w.asked, w.minimum))
	text = binary.LittleEndian.AppendUint16(text, uint16(len(w.holds)))
	text = binary.LittleEndian.AppendUint16(text, uint16(len(w.channel)))
	return string(text) + w.holds + w.channel + w.owner
}
