package contract

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
)

// Every function that finds an ended lease serves the line before anything else; inspect, which
// writes nothing, tells.
func TestEndedLeaseServesTheLineFirst(t *testing.T) {
	calls := map[string]struct {
		args  []string
		reply any
	}{
		functions.Acquire:          {[]string{"x", long}, []any{0, between{1, 2000}, "b", 1}},
		functions.AcquireReentrant: {[]string{"x", long, "h"}, []any{0, between{1, 2000}, "b", 1}},
		functions.Renew:            {[]string{"a", long}, []any{0, between{1, 2000}, "b", 1}},
		functions.Release:          {[]string{"a"}, []any{0, between{1, 2000}, "b", 1}},
		functions.Wait:             {[]string{"x", long, ""}, []any{0, between{1, 2000}, "b", 2, anything, token, anything}},
		functions.Leave:            {[]string{"x"}, []any{0}},
		functions.Break:            {nil, []any{0, "", 0}},
	}
	each(t, func(t *testing.T, b *bed) {
		for name, c := range calls {
			k, ch := b.key(name), b.key("channel"+name)
			sub := b.subscribe(ch)
			b.take(k, "a", long)
			b.wait(k, "b", ch, 1)
			b.wait(k, "c", "", 2)
			b.end(k)
			want(t, b.call(functions.Inspect, k), []any{0, "", 0, 0, 0, 2})
			want(t, b.call(name, k, c.args...), c.reply)
			owner := grant(t, sub.message()).owner
			want(t, owner, "b")
			b.expectOwner(k, "b")
		}
	})
}

// The first in line may be the one that asks; then it has the lock with its reply.
func TestEndedLeaseGoesToTheFirstInLineThatAsks(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, ask := range [][]string{{functions.Acquire, "b", long}, {functions.Wait, "b", long, ""}} {
			k := b.key(ask[0])
			b.take(k, "a", long)
			b.wait(k, "b", "", 1)
			b.end(k)
			want(t, b.call(ask[0], k, ask[1:]...), []any{1, token, 600000, 1, 1})
			b.expectLock(k, "b", 1, 0)
		}
	})
}

// Or the one that leaves: then it goes to the second, and the first is never told.
func TestEndedLeaseGoesPastTheFirstInLineThatLeaves(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k, ch := b.key("k"), b.key("channel")
		sub := b.subscribe(ch)
		b.take(k, "a", long)
		b.wait(k, "b", ch, 1)
		b.wait(k, "c", ch, 2)
		b.end(k)
		want(t, b.call(functions.Leave, k, "b"), []any{1})
		b.expectLock(k, "c", 1, 0)
		want(t, grant(t, sub.message()).owner, "c")
		sub.silent()
	})
}

// A hold of the last owner is not the next one's.
func TestHandOverForgetsHolds(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		want(t, b.call(functions.AcquireReentrant, k, "a", long, "h1"), []any{1, token, 600000, 1, 1})
		want(t, b.call(functions.AcquireReentrant, k, "a", long, "h2"), []any{1, token, 600000, 2, 1})
		b.wait(k, "b", "", 1)
		b.end(k)
		want(t, b.call(functions.Renew, k, "b", long), []any{1, token, 600000, 1, 1})
		want(t, b.call(functions.Release, k, "b"), []any{1, 0})
		b.expectFree(k)
	})
}

// With a line the key outlives the lease by a bounded time; without one it ends with the lease.
func TestTTLOfTheKey(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		lease, withLine := between{599_000, 600_001}, between{659_000, 660_000}
		expect := func(e between) { t.Helper(); want(t, b.c.do("PTTL", k), e) }
		b.take(k, "a", long)
		expect(lease)
		b.wait(k, "b", "", 1)
		expect(withLine)
		for _, call := range [][]string{{functions.Renew, "a", long}, {functions.Acquire, "a", long}, {functions.Wait, "a", long, ""}} {
			b.call(call[0], k, call[1:]...)
			expect(withLine)
		}
		want(t, b.call(functions.Leave, k, "b"), []any{1})
		expect(lease)
		b.wait(k, "b", "", 1)
		b.wait(k, "c", "", 2)
		b.call(functions.Break, k)
		expect(between{60_000, 62_000})
		b.call(functions.Break, k)
		expect(between{1, 2001})
	})
}

func TestLeaseEndsByItself(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "a", "20")
		eventually(t, "the lease ends", func() bool { return b.c.do("EXISTS", k) == int64(0) })
		want(t, b.call(functions.Renew, k, "a", long), []any{0, 0, "", 0})
		want(t, b.call(functions.Release, k, "a"), []any{0, 0, "", 0})
		b.take(k, "a", "1")
		eventually(t, "the shortest lease ends", func() bool { return b.c.do("EXISTS", k) == int64(0) })
	})
}

// The holder that left a channel is told who lost what, and why; the next in line has the lock.
func TestBreakTellsTheHolder(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k, ch, next := b.key("k"), b.key("channel"), b.key("next")
		sub, nextSub := b.subscribe(ch), b.subscribe(next)
		fence := b.take(k, "a b", long)
		want(t, b.call(functions.Renew, k, "a b", long, ch), []any{1, between{fence, fence}, 600000, 1, 1})
		want(t, b.call(functions.Break, k, "moved to another host"), []any{1, "a b", between{fence, fence}})
		want(t, sub.message(), fmt.Sprintf("broken %d 3 a b moved to another host", fence))
		b.expectFree(k)

		fence = b.take(k, "a", long)
		b.call(functions.Renew, k, "a", long, ch)
		b.wait(k, "b", next, 1)
		want(t, b.call(functions.Break, k), []any{1, "a", between{fence, fence}})
		want(t, sub.message(), fmt.Sprintf("broken %d 1 a ", fence))
		granted := grant(t, nextSub.message())
		want(t, granted.owner, "b")
		want(t, b.call(functions.Break, k, "again"), []any{1, "b", between{granted.fence, granted.fence}})
		want(t, nextSub.message(), fmt.Sprintf("broken %d 1 b again", granted.fence))

		b.take(k, "a", long)
		b.call(functions.Renew, k, "a", long, ch)
		b.call(functions.Renew, k, "a", long, "")
		want(t, b.call(functions.Break, k), []any{1, "a", token})
		sub.silent()
	})
}

// Nobody joins a line whose turns, as they went so far, will not reach it in time. Others may.
func TestMaxWait(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "a", long)
		// nothing known of turns yet
		want(t, b.call(functions.Wait, k, "b", long, "", "1", "1"), []any{0, anything, "a", 1, anything, token, anything})
		b.wait(k, "c", "", 2)
		b.setTurn(k, 1_000_000)
		want(t, b.call(functions.Wait, k, "d", long, "", "1", "2999"), []any{0, between{1, 600_000}, "a", -3, between{1, 1 << 53}, token, 0})
		b.expectLock(k, "a", 1, 2)
		b.expectNoTrace(k, 2)
		// in line already
		want(t, b.call(functions.Wait, k, "b", long, "", "1", "1"), []any{0, anything, "a", 1, anything, token, anything})
		want(t, b.call(functions.Wait, k, "d", long, "", "1", "3000"), []any{0, anything, "a", 3, anything, token, anything})
		b.wait(k, "e", "", 4)
	})
}

// setTurn writes what the state says of the length of a turn, in microseconds.
func (b *bed) setTurn(key string, us int64) {
	b.tb.Helper()
	var head, tail, count, turn, top, holds int64
	if _, err := fmt.Sscan(b.c.do("HGET", key, "state").(string), &head, &tail, &count, &turn, &top, &holds); err != nil {
		b.tb.Fatal(err)
	}
	want(b.tb, b.c.do("HSET", key, "state", fmt.Sprint(head, tail, count, us, top, holds)), 0)
}

// The server measures turns by itself: one of at least 30 ms makes it refuse a wait of 1 ms.
func TestMaxWaitByMeasuredTurns(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "a", long)
		b.wait(k, "b", "", 1)
		b.wait(k, "c", "", 2)
		from := b.serverMS()
		eventually(t, "a turn of 30 ms", func() bool { return b.serverMS() >= from+30 })
		want(t, b.call(functions.Release, k, "a"), []any{1, 0})
		want(t, b.call(functions.Wait, k, "d", long, "", "1", "1"), []any{0, anything, "b", -2, anything, token, anything})
		want(t, b.call(functions.Wait, k, "d", long, "", "1", long), []any{0, anything, "b", 2, anything, token, anything})
	})
}
