// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/functions"
)

// finish gives back a lock with the value v.
func (b *bed) finish(key, owner, keep string) {
	b.tb.Helper()
	want(b.tb, b.call(functions.Finish, key, owner, "v", keep), 1)
}

// read asks for a value.
func (b *bed) read(key string) any {
	b.tb.Helper()
	return b.call(functions.Acquire, key, "reader", long, functions.OptValue)
}

// keptBy is what a reader is told where there is no value.
func keptBy(owner string) []any { return []any{0, left, owner, 0, functions.WhyKept} }

// Who finishes tells the first 300 in line, whatever holes are between them, and nobody else.
func valueIsTold(b *bed, k string) {
	ch := b.key("channel")
	sub := b.subscribe(ch)
	b.take(k, "holder", long)
	b.fill(k, ch, 7*steps)
	for i := 1; i < 7*steps; i += 2 {
		want(b.tb, b.call(functions.Leave, k, fmt.Sprint("w", i)), 1)
	}
	b.finish(k, "holder", long)
	sub.send("PING") // the answer comes after all of them
	for i := range 3 * steps {
		want(b.tb, sub.message(), fmt.Sprint("look w", 2*i))
	}
	want(b.tb, sub.receive(ioWithin), []any{"pong", ""})
}

// A value is kept as long as was asked for, or for the minimum of who made it if that is longer, whatever somebody
// did to the TTL. The key goes with it.
func valueHasItsTime(b *bed, k string) {
	short, longer := between{1000, 5001}, between{290_000, 300_001}
	for _, c := range []struct {
		keep, minimum string
		lasts         between
	}{{"5000", "", short}, {"5000", "1000", short}, {"5000", "300000", longer}, {"300000", "", longer}, {"300000", "5000", longer}} {
		for _, handed := range []bool{false, true} {
			request := []string{"a", long}
			if c.minimum != "" {
				request = append(request, functions.OptMinHold, c.minimum)
			}
			if handed {
				b.take(k, "before", long)
			}
			b.call(functions.Wait, k, request...)
			if handed {
				want(b.tb, b.call(functions.Release, k, "before"), 1)
			}
			b.finish(k, "a", c.keep)
			want(b.tb, b.c.do("PTTL", k), c.lasts)
			want(b.tb, b.read(k), []any{0, c.lasts, "a", 0, functions.WhyDone, "v"})
			b.c.do("DEL", k)
		}
	}
	for _, hand := range [][]string{{"PERSIST", k}, {"PEXPIRE", k, "30000"}} {
		b.take(k, "a", long)
		b.wait(k, "b", "", 1)
		want(b.tb, b.c.do(hand...), 1)
		b.finish(k, "a", long)
		want(b.tb, b.c.do("PTTL", k), between{640_000, 660_001})
		b.c.do("DEL", k)
	}
}

// What stands in the key in place of a value is none: without a blank, of another token, of two numbers, too long. Nor
// is there one while somebody has the lock.
func valueOfAnother(b *bed, k string) {
	fence := b.take(k, "a", long, functions.OptMinHold, long)
	own := itoa(fence) + " v"
	b.c.do("HSET", k, "value", own)
	want(b.tb, b.read(k), busy("a", 0))
	want(b.tb, b.call(functions.Release, k, "a"), 1)
	for _, value := range []string{"", " ", "v", itoa(fence), itoa(fence) + "\x00v", " " + own, "0" + own, "+" + own, itoa(fence+1) + " v",
		itoa(fence-1) + " v", "5 v", strings.Repeat("9", 1<<20), itoa(fence) + " " + strings.Repeat("x", functions.MaxValue+1)} {
		b.c.do("HSET", k, "value", value)
		want(b.tb, b.read(k), keptBy("a"))
		want(b.tb, b.call(functions.Finish, k, "a", "w", long), keptBy("a"))
	}
	b.c.do("HSET", k, "value", own)
	want(b.tb, b.call(functions.Finish, k, "a", "v", long, functions.OptFence, itoa(fence+1)), keptBy("a"))
	want(b.tb, b.read(k), []any{0, left, "a", 0, functions.WhyDone, "v"})
}
