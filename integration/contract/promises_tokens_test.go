// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"github.com/holdfast-go/holdfast/functions"
)

func tokenAheadIsRemembered(b *bed, k string) {
	raised := b.now()/1000*1000 + 59_000_000
	b.take(k, "a", "3000")
	want(b.tb, b.call(functions.Renew, k, "a", "3000", "RAISE", itoa(raised+1_900_000)), prefix("HFARG RAISE "))
	want(b.tb, b.call(functions.Renew, k, "a", "3000", "RAISE", itoa(raised)), raised)
	want(b.tb, b.c.do("PEXPIRETIME", k), int(raised/1000+1)) // when the clock is there
	want(b.tb, b.call(functions.Renew, k, "a", "3000"), raised)
	want(b.tb, b.c.do("PTTL", k), between{50_000, 60_002})
	want(b.tb, b.call(functions.Release, k, "a"), 1)
	b.load()
	want(b.tb, b.call(functions.Acquire, k, "b", "100"), raised+1)
	b.pause(101)
	want(b.tb, b.call(functions.Acquire, k, "c", "3000"), raised+2) // the end of a lease does not lose it
	b.subscribe(k)
	want(b.tb, b.call(functions.Wait, k, "d", long, functions.OptChannel, k), []any{0, pttl, "c", 1, functions.WhyHeld, serverMS, raised + 2, 1})
	want(b.tb, b.call(functions.Release, k, "c"), 1)
	want(b.tb, b.c.do("PEXPIRETIME", k), int(raised/1000+1)) // nor does a hand-over
	want(b.tb, b.call(functions.Renew, k, "d", long), raised+3)
	above := b.now() + 60_500_000 // raised, and then others followed, or the clock was set back a little
	b.c.do("HSET", k, "fence", itoa(above))
	want(b.tb, b.call(functions.Release, k, "d"), 1)
	want(b.tb, b.call(functions.Acquire, k, "d", "3000"), above+1)
	b.c.do("HSET", k, "fence", itoa(b.now()+3_600_000_000))
	want(b.tb, b.call(functions.Release, k, "d"), 1)
	b.expectFree(k) // an hour ahead is a hand's
}

func runEnds(b *bed, k string) {
	for _, waited := range []bool{false, true} {
		fence := b.take(k, "a", long, "TOKENS", "1000000")
		if waited {
			b.wait(k, "next", "", 1)
		}
		last := fence + 900_000 // ahead of the clock, within the run
		want(b.tb, b.call(functions.Release, k, "a", "LAST", itoa(last)), 1)
		if !waited {
			b.take(k, "next", long)
		}
		got := b.call(functions.Inspect, k).([]any)
		want(b.tb, got[3], between{last + 1, fence + 999_999})
		b.c.do("DEL", k)
	}
	b.take(k, "a", long, "TOKENS", "1000000")
	want(b.tb, b.call(functions.Release, k, "a"), 1)
	b.expectFree(k)
	want(b.tb, b.take(k, "b", long), between{1, b.now()}) // it counts as used up to now
}

func runsFromTheClock(b *bed, k string) {
	fence := b.take(k, "a", long, "TOKENS", "1000")
	want(b.tb, b.call(functions.Renew, k, "a", long, "RAISE", itoa(fence+10)), fence+10)
	want(b.tb, b.call(functions.Acquire, k, "a", long, "TOKENS", "1"), []any{1, fence + 10, 990})
	b.c.do("DEL", k)
	raised := b.now() + 30_000_000
	b.take(k, "a", long)
	b.call(functions.Renew, k, "a", long, "RAISE", itoa(raised))
	want(b.tb, b.call(functions.Acquire, k, "a", long, "TOKENS", "1000"), []any{1, raised, 1})
	want(b.tb, b.call(functions.Release, k, "a"), 1)
	want(b.tb, b.call(functions.Acquire, k, "b", long, "TOKENS", "1000"), []any{1, raised + 1, 1})
	want(b.tb, b.call(functions.Wait, k, "c", long, "TOKENS", "1000").([]any)[3], 1)
	want(b.tb, b.call(functions.Release, k, "b"), 1)
	want(b.tb, b.call(functions.Wait, k, "c", long, "TOKENS", "1000"), []any{1, raised + 2, 1})
}

// A run counts as used up to the present time. Where the clock was set back that says nothing: all
// of it counts.
func runOutlivesTheClock(b *bed, k string) {
	for _, end := range [][]string{{functions.Break, "FORGET"}, {functions.Leave, "a"}, {functions.Release, "a"}} {
		b.take(k, "a", long, "TOKENS", "1000")
		fence := b.now() + 30_000_000
		want(b.tb, b.c.do("HSET", k, "fence", itoa(fence), "state", doubles(0, 0, 0, 0, float64(fence+999), 0)), 0)
		b.wait(k, "b", "", 1)
		b.call(end[0], k, end[1:]...)
		want(b.tb, b.call(functions.Inspect, k), []any{1, "b", 1, fence + 1000, anything, 0, functions.WhyHeld})
		b.c.do("DEL", k)
	}
}

// The lock is handed to the last in line, who asked for a run: the state goes on to say where it
// ends.
func handOverToARun(b *bed, k string) {
	ch := b.key("channel")
	sub := b.subscribe(ch)
	b.take(k, "a", long)
	want(b.tb, b.call(functions.Wait, k, "b", long, functions.OptChannel, ch, functions.OptTokens, "100").([]any)[3], 1)
	want(b.tb, b.call(functions.Release, k, "a"), 1)
	told := grant(b.tb, sub.message())
	want(b.tb, told.tokens, between{100, 100})
	want(b.tb, b.c.do("PTTL", k), between{1, functions.ProvisionalTTL + 1})
	want(b.tb, b.call(functions.Renew, k, "b", long), told.fence)
	state := b.c.do("HGET", k, "state").(string)
	want(b.tb, state[32:40], doubles(float64(told.fence+99)))
	b.c.do("DEL", k)
	b.take(k, "a", long)
	joins := []string{"b", long, functions.OptHold, "h", functions.OptChannel, ch} // it is no plain hand-over either
	want(b.tb, b.call(functions.Wait, k, joins...), inLine("a", 1))
	want(b.tb, b.call(functions.Release, k, "a"), 1)
	want(b.tb, b.call(functions.Wait, k, joins...), []any{1, token, 1})
}
