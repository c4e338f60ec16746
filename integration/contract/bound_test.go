package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/functions"
)

// fill lets owners w0 to w<n-1> wait, many calls on their way at once.
func (b *bed) fill(key, channel string, n int) {
	b.tb.Helper()
	const window = 500
	for from := 0; from < n; from += window {
		to := min(from+window, n)
		for i := from; i < to; i++ {
			b.c.send("FCALL", functions.Wait, "1", key, fmt.Sprint("w", i), long, channel)
		}
		for i := from; i < to; i++ {
			want(b.tb, b.c.receive(ioWithin), []any{0, anything, "holder", i + 1, anything})
		}
	}
}

// timed runs a call and logs how long the server was busy with it: nobody else is served meanwhile.
func (b *bed) timed(what, function, key string, args ...string) any {
	b.tb.Helper()
	start := time.Now()
	got := b.call(function, key, args...)
	took := time.Since(start)
	b.tb.Logf("%s: %v", what, took.Round(10*time.Microsecond))
	if took > 5*time.Second {
		b.tb.Errorf("%s took %v", what, took)
	}
	return got
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

// The line has a bound, and at that bound every function still works and answers soon.
func TestLineAtItsBound(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "holder", long)
		b.fill(k, "nobody", functions.MaxWaiters)
		before := b.content(k)
		full := failure("HFFULL the line has 10000 waiters, no more are possible")
		want(t, b.timed("refusal", functions.Wait, k, "one more", long, ""), full)
		want(t, b.content(k), before)
		want(t, b.timed("acquire", functions.Acquire, k, "one more", long), []any{0, anything, "holder", functions.MaxWaiters})
		want(t, b.timed("last asks", functions.Wait, k, "w9999", long, "nobody"), []any{0, anything, "holder", 10000, anything})
		want(t, b.timed("leave", functions.Leave, k, "w5000"), []any{1})
		want(t, b.timed("last asks, one hole", functions.Wait, k, "w9999", long, "nobody"), []any{0, anything, "holder", 9999, anything})
		want(t, b.timed("join", functions.Wait, k, "one more", long, "nobody"), []any{0, anything, "holder", 10000, anything})
		want(t, b.call(functions.Wait, k, "two more", long, ""), full)
		want(t, b.timed("release, 10000 of them dead", functions.Release, k, "holder"), []any{1, 0})
		b.expectFree(k)
	})
}

// The longest ring is closed up by one join, once, and nobody loses the place.
func TestLongestRingIsClosedUp(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "holder", long)
		b.fill(k, "", functions.MaxWaiters)
		for i := 1; i < functions.MaxWaiters-1; i++ {
			b.c.send("FCALL", functions.Leave, "1", k, fmt.Sprint("w", i))
			want(t, b.c.receive(ioWithin), []any{1})
		}
		b.expectNoTrace(k, 2)
		want(t, b.timed("last asks over all holes", functions.Wait, k, "w9999", long, ""), []any{0, anything, "holder", 2, anything})
		want(t, b.timed("join that closes up", functions.Wait, k, "new", long, ""), []any{0, anything, "holder", 3, anything})
		b.drain(k, "holder", []string{"w0", "w9999", "new"})
	})
}

// A waiter with a place at the end of a line that is dead otherwise is reached in one call.
func TestLineOfDeadWaitersHidesNobody(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "holder", long)
		b.fill(k, "nobody", functions.MaxWaiters-1)
		b.wait(k, "alive", "", functions.MaxWaiters)
		want(t, b.timed("release, 9999 of 10000 dead", functions.Release, k, "holder"), []any{1, 0})
		b.expectLock(k, "alive", 1, 0)
		b.expectNoTrace(k, 0)
	})
}

func TestHoldsAtTheirBound(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		for i := range functions.MaxHolds {
			want(t, b.call(functions.AcquireReentrant, k, "a", long, fmt.Sprint("h", i)), []any{1, token, 600000, i + 1})
		}
		before := b.c.do("DUMP", k)
		full := failure("HFFULL the lock has 1024 holds, no more are possible")
		want(t, b.call(functions.AcquireReentrant, k, "a", long, "one more"), full)
		want(t, b.call(functions.Acquire, k, "a", long), full)
		want(t, b.call(functions.Wait, k, "a", long, ""), full)
		want(t, b.c.do("DUMP", k), before)
		want(t, b.call(functions.AcquireReentrant, k, "a", long, "h7"), []any{1, token, 600000, 1024})
		for i := range functions.MaxHolds {
			want(t, b.call(functions.Release, k, "a", fmt.Sprint("h", i)), []any{1, functions.MaxHolds - 1 - i})
		}
		b.expectFree(k)
	})
}
