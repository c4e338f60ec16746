package contract

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
)

// A hash of someone else may have a field 'owner'.
func TestReleaseLeavesAForeignHashWithAnOwner(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		want(t, b.c.do("HSET", k, "owner", "a", "price", "9"), 2)
		want(t, b.call(functions.Release, k, "a"), prefix("HFTYPE "))
		want(t, b.c.do("HGET", k, "price"), "9")
	})
}

// Serving an ended lease skips waiters that cannot be told, but not the caller: the reply tells it.
func TestWaiterThatAsksIsReachable(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, ask := range [][]string{{functions.Wait, "asks", long, "nobody-2"}, {functions.Acquire, "asks", long}, {functions.Renew, "asks", long}} {
			k := b.key(ask[0])
			b.take(k, "holder", long)
			b.wait(k, "dead", "nobody-1", 1)
			b.wait(k, "asks", "nobody-2", 2)
			b.wait(k, "polls", "", 3)
			b.end(k)
			want(t, b.call(ask[0], k, ask[1:]...), []any{1, token, 600000, 1, 1})
			b.expectLock(k, "asks", 1, 1)
		}
	})
}

// And one that was passed over joins anew when it asks again.
func TestWaiterThatWasSkippedJoinsAnew(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "holder", long)
		b.wait(k, "asks", "nobody", 1)
		b.wait(k, "polls", "", 2)
		want(t, b.call(functions.Release, k, "holder"), []any{1, 0})
		want(t, b.call(functions.Wait, k, "asks", long, "nobody"), []any{0, between{1, 2000}, "polls", 1, anything, token, 0})
		b.expectLock(k, "polls", 1, 1)
	})
}

// tokenAhead gives the free lock's next holder a token ahead of the clock, as after a failover from
// a server whose clock is ahead.
func (b *bed) tokenAhead(key string, us int64) {
	b.tb.Helper()
	b.take(key, "before", long)
	want(b.tb, b.c.do("HSET", key, "fence", itoa(b.serverMS()*1000+us)), 0)
	want(b.tb, b.call(functions.Release, key, "before"), []any{1, 0})
}

// The fast path of release must remember the token as the slow one does: after FUNCTION LOAD
// REPLACE nothing else knows it.
func TestTokenAheadOfTheClockOutlivesReloadAndRelease(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, waited := range []bool{false, true} {
			k := b.key("k")
			b.tokenAhead(k, 30_000_000)
			ahead := b.take(k, "b", long)
			if waited {
				b.wait(k, "c", "", 1)
			}
			b.load()
			want(t, b.call(functions.Release, k, "b", "", "1"), []any{1, 0})
			next := b.call(functions.Acquire, k, "c", long).([]any)
			want(t, next, []any{1, between{ahead + 1, 1 << 53}, 600000, 1, 1})
			want(t, b.call(functions.Release, k, "c"), []any{1, 0})
			b.load()
		}
	})
}

// A run of tokens is given while tokens are the clock's. So it needs no memory: whatever happens to
// its key, the next token is above what can have been used, one for each microsecond.
func TestRunsAreOnlyGivenFromTheClock(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.load() // forgets the tokens that tests before this one pushed ahead of the clock
		want(t, b.call(functions.Acquire, k, "a", long, "1000000"), []any{1, token, 600000, 1, 1_000_000})
		want(t, b.call(functions.Release, k, "a"), []any{1, 0})
		b.tokenAhead(k, 30_000_000)
		ahead := b.take(k, "b", long, "1000000")
		want(t, b.call(functions.Acquire, k, "b", long, "1000"), []any{1, between{ahead, ahead}, 600000, 1, 1})
		want(t, b.call(functions.Wait, k, "c", long, "", "1000"), []any{0, anything, "b", 1, anything, token, 0})
		want(t, b.call(functions.Release, k, "b"), []any{1, 0})
		want(t, b.call(functions.Renew, k, "c", long), []any{1, between{ahead + 1, 1 << 53}, 600000, 1, 1})
		want(t, b.call(functions.Release, k, "c"), []any{1, 0})
		b.load()
	})
}

// The rest of a run that its owner gives back, or lets end, is not skipped: tokens stay the
// clock's.
func TestRunsDoNotPushTokensAheadOfTheClock(t *testing.T) {
	ends := map[string]func(b *bed, k string){
		"released":       func(b *bed, k string) { want(b.tb, b.call(functions.Release, k, "a"), []any{1, 0}) },
		"deleted":        func(b *bed, k string) { want(b.tb, b.c.do("DEL", k), 1) },
		"broken":         func(b *bed, k string) { want(b.tb, b.call(functions.Break, k), []any{1, "a", token}) },
		"left":           func(b *bed, k string) { want(b.tb, b.call(functions.Leave, k, "a"), []any{1}) },
		"last_fence":     func(b *bed, k string) { want(b.tb, b.call(functions.Release, k, "a", "", "1"), []any{1, 0}) },
		"renewed, ended": func(b *bed, k string) { b.call(functions.Renew, k, "a", "1") },
	}
	each(t, func(t *testing.T, b *bed) {
		b.load()
		for name, end := range ends {
			k := b.key(name)
			fence := b.take(k, "a", long, "1000000")
			end(b, k)
			eventually(t, "the lock is free", func() bool { return b.c.do("EXISTS", k) == int64(0) })
			next := b.take(k, "b", long)
			if now := (b.serverMS() + 1) * 1000; next <= fence || next > now {
				t.Errorf("%s: token %d after %d, at %d", name, next, fence, now)
			}
		}
	})
}

// What a key says of tokens counts for that lock. The tokens of all others stay near the clock.
func TestKeyDoesNotPushTheTokensOfOthers(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k, other := b.key("k"), b.key("other")
		far := b.serverMS()*1000 + 120_000_000
		fields := [][]string{{"fence", "9007199254740991"}, {"fence", "1e18"}, {"fence", "inf"}, {"fence", "0x7fffffffffffffff"}, {"fence", itoa(far)},
			{"fence", "9007199250000000"}, {"state", "0 0 0 0 9007199254740991 0"}, {"state", "0 0 0 0 9007199250000000 0"}, {"state", "0 0 0 0 " + itoa(far) + " "}}
		for _, f := range fields {
			for _, call := range [][]string{{functions.Release, "a"}, {functions.Release, "a", "", "9007199254740991"}, {functions.Break}, {functions.Leave, "a"}} {
				b.take(k, "a", long)
				b.c.do("HSET", k, f[0], f[1])
				b.call(call[0], k, call[1:]...)
				b.call(functions.Acquire, k, "b", long)
				fence := b.take(other, "b", long)
				if now := b.serverMS(); fence > (now+61_000)*1000 {
					t.Fatalf("%s with %q: another lock's token is %d at %d ms", call[0], f, fence, now)
				}
				b.c.do("DEL", k, other)
			}
		}
	})
}

// A token of a key is honoured by that lock.
func TestTokenOfTheKeyIsHonoured(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		far := b.serverMS()*1000 + 3_600_000_000
		b.take(k, "a", long)
		want(t, b.c.do("HSET", k, "fence", itoa(far)), 0)
		b.wait(k, "b", "", 1)
		want(t, b.call(functions.Release, k, "a"), []any{1, 0})
		want(t, b.call(functions.Inspect, k), []any{1, "b", 1, between{far + 1, far + 1}, between{1, 2000}, 0})
	})
}

// The key goes after the last millisecond of the lease, not in it.
func TestKeyOutlivesTheLastMillisecond(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		for _, call := range [][]string{{functions.Acquire, "a", long}, {functions.Renew, "a", "500000"}, {functions.Wait, "a", "400000", ""}} {
			b.call(call[0], k, call[1:]...)
			want(t, b.c.do("PEXPIRETIME", k), number(b.c.do("HGET", k, "until").(string))+1)
		}
	})
}

// A repeated call with a longer run extends it, one with a shorter run changes nothing; a repeated
// wait leaves its channel.
func TestRepeatedCallCounts(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, function := range []string{functions.Acquire, functions.Wait} {
			k, ch := b.key(function), b.key("channel"+function)
			sub := b.subscribe(ch)
			more := map[string][]string{functions.Wait: {ch}}[function]
			b.load()
			var fence int64
			for _, run := range [][2]int64{{1, 1}, {100, 100}, {10, 100}, {1000, 1000}} {
				got := b.call(function, k, append(append([]string{"a", long}, more...), itoa(run[0]))...).([]any)
				want(t, got, []any{1, token, 600000, 1, run[1]})
				if fence == 0 {
					fence = got[1].(int64)
				}
				want(t, got[1], fence)
			}
			want(t, b.call(functions.Break, k), []any{1, "a", fence})
			if function == functions.Wait {
				want(t, sub.message(), fmt.Sprintf("broken %d 1 a ", fence))
			}
			sub.silent()
		}
	})
}

// A renewal that names its token renews no later lock of the same owner: one that was on its way
// while the lock was lost and taken anew would give it the lease that it was sent for.
func TestRenewalOfAnEarlierLock(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		first := b.call(functions.AcquireReentrant, k, "a", long, "h").([]any)[1].(int64)
		want(t, b.call(functions.Release, k, "a", "h"), []any{1, 0})
		second := b.call(functions.AcquireReentrant, k, "a", long, "h").([]any)[1].(int64)
		want(t, b.call(functions.Renew, k, "a", "1000", "", itoa(first)), []any{0, pttl, "a", 0})
		want(t, b.call(functions.Inspect, k), []any{1, "a", 1, between{second, second}, between{590_000, 600_000}, 0})
		want(t, b.call(functions.Renew, k, "a", "1000", "", itoa(second)), []any{1, between{second, second}, 1000, 1, 1})
	})
}

// A run counts as used up to the present time. Where the clock was set back, that says nothing: all
// of it counts.
func TestARunOutlivesAClockThatWasSetBack(t *testing.T) {
	ends := map[string]func(b *bed, k string){
		"broken":   func(b *bed, k string) { b.call(functions.Break, k) },
		"left":     func(b *bed, k string) { b.call(functions.Leave, k, "a") },
		"released": func(b *bed, k string) { b.call(functions.Release, k, "a") },
	}
	each(t, func(t *testing.T, b *bed) {
		for name, end := range ends {
			t.Run(name, func(t *testing.T) {
				k := b.key("k")
				b.load()
				defer b.load()
				b.take(k, "a", long, "1000")
				fence := b.serverMS()*1000 + 30_000_000
				want(t, b.c.do("HSET", k, "fence", itoa(fence), "state", "0 0 0 0 "+itoa(fence+999)+" 0"), 0)
				want(t, b.call(functions.Wait, k, "b", long, ""), []any{0, anything, "a", 1, anything, between{fence, fence}, 0})
				end(b, k)
				want(t, b.call(functions.Inspect, k), []any{1, "b", 1, between{fence + 1000, fence + 1000}, anything, 0})
				want(t, b.call(functions.Release, k, "b"), []any{1, 0})
			})
		}
	})
}
