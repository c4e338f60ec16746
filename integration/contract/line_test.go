package contract

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
)

// The lock goes along the line in the order of joining, each told on its own channel with what it
// needs.
func TestHandOverInOrder(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		last := b.take(k, "w0", long)
		const n = 20
		subs := make([]*conn, n+1)
		for i := 1; i <= n; i++ {
			ch := b.key(fmt.Sprint("channel", i))
			subs[i] = b.subscribe(ch)
			b.wait(k, fmt.Sprint("w", i), ch, i)
		}
		for i := 1; i <= n; i++ {
			before := b.serverMS()
			want(t, b.call(functions.Release, k, fmt.Sprint("w", i-1)), []any{1, 0})
			got := grant(t, subs[i].message())
			want(t, got.owner, fmt.Sprint("w", i))
			want(t, got.block, between{1, 1})
			want(t, got.until, between{before + functions.ProvisionalTTL, b.serverMS() + functions.ProvisionalTTL})
			want(t, b.call(functions.Inspect, k), []any{1, got.owner, 1, between{got.fence, got.fence}, between{1, functions.ProvisionalTTL}, n - i})
			if got.fence <= last {
				t.Fatalf("token %d after %d", got.fence, last)
			}
			last = got.fence
		}
		for _, s := range subs[1:] {
			s.silent()
		}
		want(t, b.call(functions.Release, k, fmt.Sprint("w", n)), []any{1, 0})
		b.expectFree(k)
	})
}

// What was handed over lasts two seconds at most, until it is confirmed in any of three ways.
func TestHandOverIsProvisionalUntilConfirmed(t *testing.T) {
	confirm := [][]string{{functions.Renew, "b", long}, {functions.Wait, "b", long, ""}, {functions.Acquire, "b", long}}
	each(t, func(t *testing.T, b *bed) {
		for _, how := range confirm {
			k := b.key(how[0])
			b.take(k, "a", long)
			b.wait(k, "b", "", 1)
			b.wait(k, "c", "", 2)
			want(t, b.call(functions.Release, k, "a"), []any{1, 0})
			got := b.call(functions.Inspect, k).([]any)
			want(t, got, []any{1, "b", 1, token, between{1, functions.ProvisionalTTL}, 1})
			want(t, b.call(how[0], k, how[1:]...), []any{1, got[3], 600000, 1, 1})
			want(t, b.call(functions.Inspect, k), []any{1, "b", 1, got[3], between{599_000, 600_000}, 1})
		}
		k := b.key("shorter than two seconds")
		b.take(k, "a", long)
		want(t, b.call(functions.Wait, k, "b", "700", ""), []any{0, anything, "a", 1, anything, token, anything})
		want(t, b.call(functions.Release, k, "a"), []any{1, 0})
		want(t, b.call(functions.Inspect, k), []any{1, "b", 1, token, between{0, 700}, 0})
	})
}

// One that never confirms loses the lock to the next, by the server's own clock.
func TestHandOverThatIsNotConfirmedGoesOn(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "a", long)
		want(t, b.call(functions.Wait, k, "dead", "30", ""), []any{0, anything, "a", 1, anything, token, anything})
		b.wait(k, "c", "", 2)
		want(t, b.call(functions.Release, k, "a"), []any{1, 0})
		eventually(t, "the lease of the dead one ends", func() bool { return matches(b.call(functions.Inspect, k), []any{0, "", 0, 0, 0, 1}) })
		want(t, b.call(functions.Renew, k, "dead", long), []any{0, between{1, 2000}, "c", 0})
		b.expectLock(k, "c", 1, 0)
	})
}

// Waiters that cannot be told are skipped in the same call, and if there is nobody else the lock is
// free.
func TestDeadSubscribersAreSkippedAtOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k, ch := b.key("k"), b.key("channel")
		gone := b.subscribe(b.key("gone"))
		b.take(k, "a", long)
		const dead = 99 // with the living one as many as one call passes over
		for i := range dead {
			b.wait(k, fmt.Sprint("dead", i), b.key("gone"), i+1)
		}
		gone.close()
		eventually(t, "the server sees the closed connection", func() bool {
			return matches(b.c.do("PUBSUB", "SHARDNUMSUB", b.key("gone")), []any{b.key("gone"), 0})
		})
		sub := b.subscribe(ch)
		b.wait(k, "alive", ch, dead+1)
		want(t, b.call(functions.Release, k, "a"), []any{1, 0})
		owner := grant(t, sub.message()).owner
		want(t, owner, "alive")
		b.expectLock(k, "alive", 1, 0)
		b.expectNoTrace(k, 0)

		b.wait(k, "nobody", "no such channel", 1)
		want(t, b.call(functions.Release, k, "alive"), []any{1, 0})
		b.expectFree(k)
	})
}

// expectNoTrace asserts that the hash has fields for as many waiters as there are, and besides at
// most two for the holes before each of them.
func (b *bed) expectNoTrace(key string, waiters int) {
	b.tb.Helper()
	fields, _ := b.c.do("HGETALL", key).([]any)
	entries, markers := 0, 0
	for i := 0; i < len(fields); i += 2 {
		switch {
		case matches(fields[i+1], prefix("<")) || matches(fields[i+1], prefix(">")):
			markers++
		case matches(fields[i], prefix("w:")) || matches(fields[i], prefix("at:")):
			entries++
		}
	}
	want(b.tb, int64(entries), 2*waiters)
	if markers > 2*waiters {
		b.tb.Fatalf("%d fields of holes among %d waiters", markers, waiters)
	}
}

// An owner that polls with wait, or with acquire, is in the line like any other.
func TestPollingWaiterIsServed(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, ask := range [][]string{{functions.Wait, "b", long, ""}, {functions.Acquire, "b", long}} {
			k := b.key(ask[0])
			b.take(k, "a", long)
			b.wait(k, "b", "", 1)
			want(t, b.call(ask[0], k, ask[1:]...).([]any)[0], 0)
			want(t, b.call(functions.Release, k, "a"), []any{1, 0})
			want(t, b.call(ask[0], k, ask[1:]...), []any{1, token, 600000, 1, 1})
		}
	})
}

// Asking again keeps the place and changes what was asked for: the last call counts.
func TestAskingAgainKeepsThePlaceAndChangesTheRest(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k, ch := b.key("k"), b.key("channel")
		sub := b.subscribe(ch)
		b.take(k, "a", long)
		b.wait(k, "b", "old channel", 1)
		b.wait(k, "c", "", 2)
		want(t, b.call(functions.Wait, k, "b", "1234", ch, "77"), []any{0, anything, "a", 1, anything, token, anything})
		want(t, b.call(functions.Release, k, "a"), []any{1, 0})
		got := grant(t, sub.message())
		want(t, got.owner, "b")
		want(t, got.block, between{77, 77})
		want(t, b.call(functions.Inspect, k), []any{1, "b", 1, between{got.fence, got.fence}, between{1, 1234}, 1})
	})
}

func TestLeave(t *testing.T) {
	for name, leaver := range map[string]int{"head": 1, "middle": 3, "tail": 5} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, b *bed) {
				k := b.key("k")
				b.take(k, "w0", long)
				var line []string
				for i := 1; i <= 5; i++ {
					line = append(line, fmt.Sprint("w", i))
					b.wait(k, line[i-1], "", i)
				}
				want(t, b.call(functions.Leave, k, fmt.Sprint("w", leaver)), []any{1})
				want(t, b.call(functions.Leave, k, fmt.Sprint("w", leaver)), []any{0})
				line = slices.Delete(line, leaver-1, leaver)
				b.expectLine(k, "w0", line)
				b.wait(k, "last", "", 5)
				b.drain(k, "w0", append(line, "last"))
			})
		})
	}
}

// A waiter that gives up when the lock was already handed to it gives it to the next.
func TestLeaveThatCrossesWithAGrant(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k, ch := b.key("k"), b.key("channel")
		sub := b.subscribe(ch)
		b.take(k, "a", long)
		b.wait(k, "b", ch, 1)
		b.wait(k, "c", "", 2)
		want(t, b.call(functions.Release, k, "a"), []any{1, 0})
		sub.message()
		want(t, b.call(functions.Leave, k, "b"), []any{1})
		b.expectLock(k, "c", 1, 0)
		want(t, b.call(functions.Leave, k, "b"), []any{0})
		want(t, b.call(functions.Leave, k, "c"), []any{1})
		b.expectFree(k)
	})
}

// expectLine asserts who holds the lock and who waits, by asking for every one of them.
func (b *bed) expectLine(key, owner string, line []string) {
	b.tb.Helper()
	for i, w := range line {
		b.wait(key, w, "", i+1)
	}
	b.expectLock(key, owner, 1, len(line))
	b.expectNoTrace(key, len(line))
}

// drain releases until nobody is left and asserts the order.
func (b *bed) drain(key, owner string, line []string) {
	b.tb.Helper()
	for _, next := range line {
		want(b.tb, b.call(functions.Release, key, owner), []any{1, 0})
		b.expectOwner(key, next)
		owner = next
	}
	want(b.tb, b.call(functions.Release, key, owner), []any{1, 0})
	b.expectFree(key)
}

func (b *bed) expectOwner(key, owner string) {
	b.tb.Helper()
	want(b.tb, b.call(functions.Inspect, key).([]any)[1], owner)
}

// Joining and leaving leaves holes in the ring. Positions stay exact, and the ring does not grow
// without bound.
func TestRingWithManyHoles(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		rnd := rand.New(rand.NewPCG(7, 7))
		b.take(k, "holder", long)
		var line []string
		joined := 0
		for range 4000 {
			if len(line) < 20 || rnd.IntN(2) == 0 && len(line) < 700 {
				line = append(line, fmt.Sprint("w", joined))
				b.wait(k, line[len(line)-1], "", len(line))
				joined++
				continue
			}
			at := rnd.IntN(len(line))
			want(t, b.call(functions.Leave, k, line[at]), []any{1})
			line = slices.Delete(line, at, at+1)
			if len(line) > 0 {
				at = rnd.IntN(len(line))
				b.wait(k, line[at], "", at+1)
			}
		}
		b.expectLine(k, "holder", line)
		b.drain(k, "holder", line)
	})
}

// Holes side by side are one run, so a line that goes on churning keeps few fields, and asking in
// it stays cheap.
func TestHolesSideBySideAreOneRun(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "holder", long)
		b.wait(k, "first", "", 1)
		for i := range 1000 {
			b.wait(k, fmt.Sprint("w", i), "", 2)
			b.wait(k, "last", "", 3)
			want(t, b.call(functions.Leave, k, fmt.Sprint("w", i)), []any{1})
			b.wait(k, "last", "", 2)
			want(t, b.call(functions.Leave, k, "last"), []any{1})
			b.expectNoTrace(k, 1)
			b.wait(k, "first", "", 1) // a busy machine takes longer for all this than a poller may be silent
		}
		b.drain(k, "holder", []string{"first"})
	})
}
