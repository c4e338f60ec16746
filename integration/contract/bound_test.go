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
	const window = 500
	for from := 0; from < n; from += window {
		to := min(from+window, n)
		for i := from; i < to; i++ {
			args := []string{"FCALL", functions.Wait, "1", key, fmt.Sprint("w", i), long, functions.OptChannel, channel}
			b.c.send(append(args, more...)...)
		}
		for i := from; i < to; i++ {
			want(b.tb, b.c.receive(ioWithin), []any{0, anything, "holder", i + 1, functions.WhyHeld, serverMS, token, anything})
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

// The line has a bound, and at that bound every function still works. However many of it are dead, one call
// passes over 100 places and no more. The next ones go on, whatever they are.
// In the end the living waiter has the lock.
func TestLineAtItsBound(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "holder", long)
		listens := b.subscribe("nobody") // for so long: those who came first would be dead after 5 s
		b.fill(k, "nobody", functions.MaxWaiters)
		before := b.content(k)
		bounded := func(function string, args ...string) (got any) {
			calls := b.inner(func() { got = b.call(function, k, args...) })
			if calls["hget"] > 2*steps+3 || calls["pubsub|shardnumsub"] > 2*steps+4 || calls["hset"] > 1 || calls["hdel"] > 1 {
				t.Errorf("%s executed %v", function, calls)
			}
			return got
		}
		full := failure("HFFULL the line has 5000 waiters, no more are possible")
		want(t, bounded(functions.Wait, "one more", long, functions.OptChannel, "nobody"), full)
		want(t, b.content(k), before)
		want(t, bounded(functions.Acquire, "one more", long), busy("holder", functions.MaxWaiters))
		want(t, bounded(functions.Wait, "w4999", long, functions.OptChannel, "nobody"), inLine("holder", 5000))
		want(t, bounded(functions.Leave, "w50"), 1)
		want(t, bounded(functions.Wait, "w4999", long, functions.OptChannel, "nobody"), inLine("holder", 4999))
		want(t, bounded(functions.Wait, "alive", long), inLine("holder", 5000))
		want(t, bounded(functions.Wait, "two more", long), full)
		want(t, listens.do("SUNSUBSCRIBE", "nobody"), []any{"sunsubscribe", "nobody", 0})
		want(t, bounded(functions.Release, "holder"), 1)
		for _, call := range [][]string{{functions.Wait, "x", long}, {functions.Leave, "x"}, {functions.Renew, "x", long}, {functions.Release, "x"}, {functions.Break}} {
			bounded(call[0], call[1:]...)
		}
		for left := functions.MaxWaiters - 6*steps + 1; left > steps; left -= steps { // a hole is a place
			want(t, b.call(functions.Inspect, k), []any{0, "", 0, 0, 0, left, functions.WhyServing})
			want(t, b.c.do("PTTL", k), between{39_000, 80_000})
			b.expectNoTrace(k, left)
			want(t, bounded(functions.Acquire, "passer-by", long), []any{0, 0, "", left - steps, functions.WhyServing})
		}
		want(t, b.call(functions.Acquire, k, "passer-by", long), busy("alive", 0))
		b.expectLock(k, "alive", 1, 0)
		b.expectNoTrace(k, 0)
	}, server.Owned())
}

// steps is how many places of the line one call passes over.
const steps = 100

// Positions are exact for the first 100 waiters, whatever holes there are; behind them they never
// sound nearer than that. Nothing is left of the holes when those beside them are gone.
func TestPositionsAmongHoles(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		const n = 720
		b.take(k, "holder", long)
		b.fill(k, "nobody", n)
		for _, first := range []int{2, 3, 5, 0, 4} { // the last one joins two runs
			for i := first; i < n; i += 6 {
				want(t, b.call(functions.Leave, k, fmt.Sprint("w", i)), 1)
			}
		}
		for i := range n / 6 {
			exact := any(i + 1)
			if i >= steps {
				exact = between{steps + 1, n / 6}
			}
			got := b.call(functions.Wait, k, fmt.Sprint("w", 6*i+1), long)
			want(t, got, inLine("holder", exact))
		}
		b.expectNoTrace(k, n/6)
		for i, holder := 0, "holder"; i < n/4; i += 6 { // from both ends
			for _, next := range []int{3*i + 1, 3*i + 7} {
				want(t, b.call(functions.Release, k, holder), 1)
				holder = fmt.Sprint("w", next)
			}
			want(t, b.call(functions.Leave, k, fmt.Sprint("w", 3*i+13)), 1)
			want(t, b.call(functions.Leave, k, fmt.Sprint("w", n-5-i)), 1)
		}
		b.expectNoTrace(k, 0)
	})
}

// The holds have a bound too. Their ids are written when they change, not by every call.
// With many of them that would be kilobytes to each replica.
func TestHoldsAtTheirBound(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		id := func(i int) string { return fmt.Sprint(strings.Repeat("h", functions.MaxHoldBytes-3), 100+i) }
		for i := range functions.MaxHolds {
			want(t, b.call(functions.AcquireReentrant, k, "a", long, id(i)), []any{1, token, i + 1})
		}
		before := b.c.do("DUMP", k)
		full := failure("HFFULL the lock has 128 holds, no more are possible")
		want(t, b.call(functions.AcquireReentrant, k, "a", long, "one more"), full)
		want(t, b.call(functions.Wait, k, "a", long, functions.OptHold, "one more"), full)
		want(t, b.c.do("DUMP", k), before)
		monitor := b.dial(2)
		want(t, monitor.do("MONITOR"), "OK")
		want(t, b.call(functions.AcquireReentrant, k, "a", long, id(7)), []any{1, token, functions.MaxHolds})
		for _, call := range [][]string{{functions.Renew, "a", long}, {functions.Wait, "b", long},
			{functions.Wait, "b", long}, {functions.Leave, "b"}, {functions.Acquire, "c", long}, {functions.Release, "a", "HOLD", "unknown"}} {
			b.call(call[0], k, call[1:]...)
		}
		b.c.do("ECHO", "the end")
		for line := ""; !strings.Contains(line, "the end"); line = monitor.receive(ioWithin).(string) {
			if strings.Contains(line, " lua]") && len(line) > 1000 {
				t.Errorf("%d bytes are written: %.200s", len(line), line)
			}
		}
		for i := range functions.MaxHolds {
			want(t, b.call(functions.Release, k, "a", functions.OptHold, id(i)), []any{1, functions.MaxHolds - 1 - i})
		}
		b.expectFree(k)
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
