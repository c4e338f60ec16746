package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
)

// fill lets owners w0 to w<n-1> wait for what 'holder' has, many calls on their way at once.
func (b *bed) fill(key, channel string, n int) {
	b.tb.Helper()
	b.fillBehind(key, "holder", channel, n)
}

func (b *bed) fillBehind(key, holder, channel string, n int) {
	b.tb.Helper()
	const window = 500
	for from := 0; from < n; from += window {
		to := min(from+window, n)
		for i := from; i < to; i++ {
			b.c.send("FCALL", functions.Wait, "1", key, fmt.Sprint("w", i), long, channel)
		}
		for i := from; i < to; i++ {
			want(b.tb, b.c.receive(ioWithin), []any{0, anything, holder, i + 1, anything, token, anything})
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
		b.fill(k, "nobody", functions.MaxWaiters)
		before := b.content(k)
		full := failure("HFFULL the line has 5000 waiters, no more are possible")
		want(t, b.call(functions.Wait, k, "one more", long, ""), full)
		want(t, b.content(k), before)
		want(t, b.call(functions.Acquire, k, "one more", long), []any{0, anything, "holder", functions.MaxWaiters})
		want(t, b.call(functions.Wait, k, "w4999", long, "nobody"), []any{0, anything, "holder", 5000, anything, token, 0})
		want(t, b.call(functions.Leave, k, "w2500"), []any{1})
		want(t, b.call(functions.Wait, k, "w4999", long, "nobody"), []any{0, anything, "holder", 4999, anything, token, 0})
		want(t, b.call(functions.Wait, k, "one more", long, "nobody"), []any{0, anything, "holder", 5000, anything, token, 0})
		want(t, b.call(functions.Wait, k, "two more", long, ""), full)
	})
}

// One call passes over 100 places. The next ones go on, whatever they are, and in the end the
// living waiter has the lock.
func TestLineOfDeadWaitersIsTakenApartInSteps(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "holder", long)
		b.fill(k, "nobody", functions.MaxWaiters-1)
		b.wait(k, "alive", "", functions.MaxWaiters)
		want(t, b.call(functions.Release, k, "holder"), []any{1, 0})
		for left := functions.MaxWaiters - steps; left > 0; left -= steps {
			want(t, b.call(functions.Inspect, k), []any{0, "", 0, 0, 0, left})
			want(t, b.c.do("PTTL", k), between{50_000, 60_000})
			b.expectNoTrace(k, left)
			if left > steps {
				want(t, b.call(functions.Acquire, k, "passer-by", long), []any{0, 0, "", left - steps})
			}
		}
		want(t, b.call(functions.Acquire, k, "passer-by", long), []any{0, between{1, 2000}, "alive", 0})
		b.expectLock(k, "alive", 1, 0)
		b.expectNoTrace(k, 0)
	})
}

// Who joins behind a line of the dead is served, and so is the line that has nobody else.
func TestJoinBehindALineOfDeadWaiters(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "holder", long)
		b.fill(k, "nobody", 2*steps+1)
		want(t, b.call(functions.Release, k, "holder"), []any{1, 0})
		want(t, b.call(functions.Wait, k, "new", long, ""), []any{0, 0, "", 2, anything, token, 0})
		want(t, b.call(functions.Wait, k, "new", long, ""), []any{1, token, 600000, 1, 1})
		b.expectNoTrace(k, 0)

		b.fillBehind(k, "new", "nobody", steps+1)
		want(t, b.call(functions.Release, k, "new"), []any{1, 0})
		want(t, b.call(functions.Renew, k, "new", long), []any{0, 0, "", 0})
		b.expectFree(k)
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
		b.fill(k, "", n)
		left := 0
		for i := range n {
			if i%3 != 1 { // runs of two between those that stay
				want(t, b.call(functions.Leave, k, fmt.Sprint("w", i)), []any{1})
				left++
			}
		}
		for i := range n / 3 {
			exact := any(i + 1)
			if i >= steps {
				exact = between{steps + 1, n - int64(left)}
			}
			got := b.call(functions.Wait, k, fmt.Sprint("w", 3*i+1), long, "")
			want(t, got, []any{0, anything, "holder", exact, anything, token, 0})
		}
		b.expectNoTrace(k, n/3)
	})
}

func TestHoldsAtTheirBound(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		for i := range functions.MaxHolds {
			want(t, b.call(functions.AcquireReentrant, k, "a", long, fmt.Sprint("h", i)), []any{1, token, 600000, i + 1, 1})
		}
		before := b.c.do("DUMP", k)
		full := failure("HFFULL the lock has 128 holds, no more are possible")
		want(t, b.call(functions.AcquireReentrant, k, "a", long, "one more"), full)
		want(t, b.call(functions.Wait, k, "a", long, "", "1", long, "one more"), full)
		want(t, b.c.do("DUMP", k), before)
		want(t, b.call(functions.AcquireReentrant, k, "a", long, "h7"), []any{1, token, 600000, functions.MaxHolds, 1})
		for i := range functions.MaxHolds {
			want(t, b.call(functions.Release, k, "a", fmt.Sprint("h", i)), []any{1, functions.MaxHolds - 1 - i})
		}
		b.expectFree(k)
	})
}
