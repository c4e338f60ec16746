// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// fill lets owners w0 to w<n-1> wait for what 'holder' has, many calls on their way at once.
func (b *bed) fill(key, channel string, n int, more ...string) {
	b.tb.Helper()
	b.fillBehind(key, "holder", channel, n, more...)
}

func (b *bed) fillBehind(key, holder, channel string, n int, more ...string) {
	b.tb.Helper()
	const window = 500
	for from := 0; from < n; from += window {
		to := min(from+window, n)
		for i := from; i < to; i++ {
			args := []string{"FCALL", functions.Wait, "1", key, fmt.Sprint("w", i), long, functions.OptChannel, channel}
			b.c.send(append(args, more...)...)
		}
		for i := from; i < to; i++ {
			want(b.tb, b.c.receive(ioWithin), []any{0, anything, holder, i + 1, functions.WhyHeld, serverMS, token, anything})
		}
	}
}

// content is all of a large hash, sorted: its order may change when it is only read.
func (b *bed) content(key string) string {
	b.tb.Helper()
	flat := b.c.do("HGETALL", key).([]any)
	pairs := make([]string, 0, len(flat)/2)
	for i := 0; i < len(flat); i += 2 {
		pairs = append(pairs, fmt.Sprintf("%q=%q", flat[i], flat[i+1]))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "\n")
}

// The line has a bound, and at that bound every function still works.
func TestLineAtItsBound(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "holder", long)
		b.subscribe("somebody") // those who came first would be dead after 5 s
		b.fill(k, "somebody", functions.MaxWaiters)
		before := b.content(k)
		full := failure("HFFULL the line has 5000 waiters, no more are possible")
		want(t, b.call(functions.Wait, k, "one more", long), full)
		want(t, b.content(k), before)
		want(t, b.call(functions.Acquire, k, "one more", long), busy("holder", functions.MaxWaiters))
		want(t, b.call(functions.Wait, k, "w4999", long, functions.OptChannel, "somebody"), inLine("holder", 5000))
		want(t, b.call(functions.Leave, k, "w2500"), 1)
		want(t, b.call(functions.Wait, k, "w4999", long, functions.OptChannel, "somebody"), inLine("holder", 4999))
		want(t, b.call(functions.Wait, k, "one more", long, functions.OptChannel, "somebody"), inLine("holder", 5000))
		want(t, b.call(functions.Wait, k, "two more", long), full)
	})
}

// One call passes over 100 places. The next ones go on, whatever they are, and in the end the
// living waiter has the lock.
func TestLineOfDeadWaitersIsTakenApartInSteps(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "holder", long)
		listens := b.subscribe("nobody") // for so long
		b.fill(k, "nobody", functions.MaxWaiters-1)
		b.wait(k, "alive", "", functions.MaxWaiters)
		want(t, listens.do("SUNSUBSCRIBE", "nobody"), []any{"sunsubscribe", "nobody", 0})
		want(t, b.call(functions.Release, k, "holder"), 1)
		for left := functions.MaxWaiters - steps; left > 0; left -= steps {
			want(t, b.call(functions.Inspect, k), []any{0, "", 0, 0, 0, left, functions.WhyServing})
			want(t, b.c.do("PTTL", k), between{39_000, 80_000})
			b.expectNoTrace(k, left)
			if left > steps {
				want(t, b.call(functions.Acquire, k, "passer-by", long), []any{0, 0, "", left - steps, functions.WhyServing})
			}
		}
		want(t, b.call(functions.Acquire, k, "passer-by", long), busy("alive", 0))
		b.expectLock(k, "alive", 1, 0)
		b.expectNoTrace(k, 0)
	})
}

// steps is how many places of the line one call passes over.
const steps = 100

// Positions are exact for the first 100 waiters, whatever holes there are; behind them they never
// sound nearer than that.
func TestPositionsAmongHoles(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		const n = 600
		b.take(k, "holder", long)
		b.fill(k, "nobody", n)
		left := 0
		for i := range n {
			if i%3 != 1 { // runs of two between those that stay
				want(t, b.call(functions.Leave, k, fmt.Sprint("w", i)), 1)
				left++
			}
		}
		for i := range n / 3 {
			exact := any(i + 1)
			if i >= steps {
				exact = between{steps + 1, n - int64(left)}
			}
			got := b.call(functions.Wait, k, fmt.Sprint("w", 3*i+1), long)
			want(t, got, inLine("holder", exact))
		}
		b.expectNoTrace(k, n/3)
	})
}

func TestHoldsAtTheirBound(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		for i := range functions.MaxHolds {
			want(t, b.call(functions.AcquireReentrant, k, "a", long, fmt.Sprint("h", i)), []any{1, token, i + 1})
		}
		before := b.c.do("DUMP", k)
		full := failure("HFFULL the lock has 128 holds, no more are possible")
		want(t, b.call(functions.AcquireReentrant, k, "a", long, "one more"), full)
		want(t, b.call(functions.Wait, k, "a", long, functions.OptHold, "one more"), full)
		want(t, b.c.do("DUMP", k), before)
		want(t, b.call(functions.AcquireReentrant, k, "a", long, "h7"), []any{1, token, functions.MaxHolds})
		for i := range functions.MaxHolds {
			want(t, b.call(functions.Release, k, "a", functions.OptHold, fmt.Sprint("h", i)), []any{1, functions.MaxHolds - 1 - i})
		}
		b.expectFree(k)
	})
}

// The ids of holds are written when they change, not by every call: with many of them that would be
// kilobytes to each replica.
func TestHoldsAreWrittenWhenTheyChange(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		id := func(i int) string { return fmt.Sprint(strings.Repeat("h", functions.MaxHoldBytes-3), 100+i) }
		for i := range 100 {
			want(t, b.call(functions.AcquireReentrant, k, "a", long, id(i)), []any{1, token, i + 1})
		}
		monitor := b.dial(2)
		want(t, monitor.do("MONITOR"), "OK")
		for _, call := range [][]string{{functions.Renew, "a", long}, {functions.AcquireReentrant, "a", long, id(7)}, {functions.Wait, "b", long},
			{functions.Wait, "b", long}, {functions.Leave, "b"}, {functions.Acquire, "c", long}, {functions.Release, "a", "HOLD", "unknown"}} {
			b.call(call[0], k, call[1:]...)
		}
		b.c.do("ECHO", "the end")
		for line := ""; !strings.Contains(line, "the end"); line = monitor.receive(ioWithin).(string) {
			if strings.Contains(line, " lua]") && len(line) > 1000 {
				t.Errorf("%d bytes are written: %.200s", len(line), line)
			}
		}
	}, server.Owned())
}

// expectNoTrace asserts that the hash has fields for as many waiters as there are, and besides at
// most two for the holes before each of them.
func (b *bed) expectNoTrace(key string, waiters int) {
	b.tb.Helper()
	s, _ := parseLook(b.c.do("EVAL", look, "1", key))
	want(b.tb, s.waiting, 2*waiters)
	want(b.tb, s.marks, between{0, int64(2 * waiters)})
}

// With its memory full the server refuses what may need more, before it starts, and runs what gives
// back or keeps alive.
func TestFullMemory(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		full := func(on string) { t.Helper(); want(t, b.c.do("CONFIG", "SET", "maxmemory", on), "OK") }
		k, free := b.key("k"), b.key("free")
		fence := b.take(k, "a", long)
		b.wait(k, "b", "", 1)
		b.wait(k, "c", "", 2)
		before := b.c.do("DUMP", k)
		full("1")
		for _, lock := range []string{k, free} {
			for _, call := range [][]string{
				{functions.Acquire, "a", long}, {functions.AcquireReentrant, "a", long, "h"}, {functions.Wait, "a", long}, {functions.Wait, "d", long}, {functions.Finish, "a", "v", long},
			} {
				want(t, b.call(call[0], lock, call[1:]...), prefix("OOM "))
			}
		}
		want(t, b.c.do("EXISTS", free), 0)
		want(t, b.c.do("DUMP", k), before)
		want(t, b.call(functions.Inspect, k), []any{1, "a", 1, fence, left, 2, functions.WhyHeld})
		want(t, b.call(functions.Renew, k, "a", long), fence)
		want(t, b.call(functions.Release, k, "a"), 1)
		b.expectLock(k, "b", 1, 1)
		want(t, b.call(functions.Renew, k, "b", long), token)
		want(t, b.call(functions.Break, k, "FORGET"), []any{1, "b", token})
		b.expectLock(k, "c", 1, 0)
		want(t, b.call(functions.Leave, k, "c"), 1)
		b.expectFree(k)
		want(t, b.c.do("FCALL", functions.ReadVersion, "0"), functions.Version)
		full("0")
		b.take(k, "d", long)
	}, server.Owned())
}
