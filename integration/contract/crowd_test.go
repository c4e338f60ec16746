// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// share lets owners w0 to w<n-1> share a lock, many calls on their way at once.
func (b *bed) share(key string, n int) {
	b.tb.Helper()
	for i := range n {
		b.c.send("FCALL", functions.Acquire, "1", key, fmt.Sprint("w", i), long, functions.OptShared)
	}
	for i := range n {
		want(b.tb, b.c.receive(ioWithin), []any{1, token, i + 1})
	}
}

// endSlot puts the end of the lease of a slot into the past.
func (b *bed) endSlot(key string, slot int) {
	b.tb.Helper()
	want(b.tb, b.c.do("EVAL", slotPast, "1", key, fmt.Sprint(slot), "lease"), 0)
}

// A thousand share the lock, and no more.
func thousandShare(b *bed, k string) {
	b.share(k, functions.MaxHolders)
	want(b.tb, b.call(functions.Acquire, k, "one more", long, functions.OptShared), []any{0, left, "", 0, functions.WhyShared})
	for from, next := 1, 0; from > 0; from = next {
		if next = from + steps; next > functions.MaxHolders {
			next = 0
		}
		page := b.call(functions.Holders, k, fmt.Sprint(from)).([]any)
		want(b.tb, page[:5], []any{next, from, fmt.Sprint("w", from-1), token, left})
		want(b.tb, int64(len(page)), 1+4*steps)
	}
}

// A waiter that does not fit keeps nobody out if it is silent, sooner if nobody hears its channel.
func deadHead(b *bed, k string) {
	share := func(owner string) any { return b.call(functions.Wait, k, owner, long, functions.OptShared) }
	heard := b.key("channel")
	b.subscribe(heard)
	for channel, silent := range map[string]int64{"nobody": functions.PollTTL, heard: 4 * functions.PollTTL} {
		want(b.tb, share("a"), []any{1, token, 1})
		want(b.tb, b.call(functions.Wait, k, "writer", long, functions.OptChannel, channel).([]any)[3], 1)
		want(b.tb, share("b").([]any)[3], 2)
		b.asked(k, 0, 1000-silent)
		want(b.tb, share("b").([]any)[3], 2)
		b.asked(k, 0, -silent-1000)
		want(b.tb, share("b"), []any{1, token, 2})
		b.c.do("DEL", k)
	}
}

// Behind more dead ones than one call passes over, the first who hears is to go on; who cannot be told by this
// caller does not.
func behindHundred(b *bed, k string) {
	sub := b.subscribe(k)
	b.subscribe(b.key("another's"))
	b.take(k, "holder", long)
	b.fill(k, "nobody", 3*steps/2)
	b.wait(k, "deaf", b.key("another's"), 3*steps/2+1)
	b.wait(k, "alive", k, 3*steps/2+2)
	caller := b.as([]string{"~*", "+@all", "resetchannels", "&" + k, "&nobody"})
	want(b.tb, caller.do("FCALL", functions.Release, "1", k, "holder"), 1)
	want(b.tb, sub.message(), "look alive")
	want(b.tb, caller.do("FCALL", functions.Wait, "1", k, "alive", long), token)
}

// One lease ends after the other. Its slot is free then, also if others renewed since.
func leasesEnd(b *bed, k string) {
	limited := func(owner, ttl string) []string {
		return []string{"FCALL", functions.Acquire, "1", k, owner, ttl, functions.OptLimit, "2"}
	}
	want(b.tb, b.one(limited("a", "100"), limited("b", long), limited("c", long)),
		[]any{[]any{1, token, 1}, []any{1, token, 2}, []any{0, between{1, 101}, "", 0, functions.WhyLimited}})
	b.pause(101)
	want(b.tb, b.call(functions.Inspect, k), []any{1, "", 1, token, left, 0, functions.WhyLimited})
	want(b.tb, b.call(functions.Acquire, k, "c", long, functions.OptLimit, "2"), []any{1, token, 1})
	want(b.tb, b.call(functions.Renew, k, "b", "700000"), token)
	b.call(functions.Acquire, k, "d", long, functions.OptLimit, "3", functions.OptMinHold, "10000")
	want(b.tb, b.call(functions.Release, k, "d"), 1)
	want(b.tb, b.call(functions.Holders, k), []any{0, 1, "c", token, left, 2, "b", token, between{650_000, 700_001}, 3, "", token, between{1, 10_001}})
}

// One call ends 100 leases and no more. Who lost its own meanwhile has it no more, and can come back.
func manyLeasesEnd(b *bed, k string) {
	const n = steps + 1
	lost := fmt.Sprint("w", n-1)
	shareUntilNow := func() {
		b.share(k, n)
		want(b.tb, b.call(functions.Holders, k).([]any)[0], n)
		for i := range n {
			b.endSlot(k, i+1)
		}
	}
	shareUntilNow()
	want(b.tb, b.call(functions.Inspect, k), free) // it reads all
	want(b.tb, b.call(functions.Renew, k, lost, long), []any{0, 0, "", 0, functions.WhyShared})
	want(b.tb, b.call(functions.Renew, k, lost, long), gone)
	shareUntilNow()
	got := b.call(functions.Acquire, k, lost, long, functions.OptShared)
	want(b.tb, got, []any{1, token, 1})
	want(b.tb, b.call(functions.Renew, k, lost, long), got.([]any)[1])
}

// Whoever writes into the key that it has a slot has none.
func slotOfAnother(b *bed, k string) {
	want(b.tb, b.call(functions.Acquire, k, "a", long, functions.OptLimit, "2"), []any{1, token, 1})
	for _, at := range []string{"h1", "h2", "h0", "h-1", "h1001", "h01", "h", "1"} {
		b.c.do("HSET", k, "at:b", at)
		want(b.tb, b.call(functions.Renew, k, "b", long), []any{0, left, "", 0, functions.WhyLimited})
	}
	want(b.tb, b.call(functions.Holders, k), []any{0, 1, "a", token, left})
}

// Many are granted by one call, and the next one goes on. What that costs does not grow with them but
// for the grants.
func TestWhatManyHoldersCost(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k, ch := b.key("k"), b.key("channel")
		b.subscribe(ch)
		b.take(k, "holder", long)
		b.fill(k, ch, steps+50, functions.OptShared)
		for _, granted := range []int{steps, steps + 50} {
			calls := b.inner(func() { b.call(functions.Release, k, "holder") })
			want(t, b.call(functions.Inspect, k), []any{1, "", granted, token, anything, steps + 50 - granted, functions.WhyShared})
			if calls["hget"]+calls["hmget"] > steps+10 || calls["hset"] > 1 || calls["hdel"] > 1 || calls["spublish"] > steps+1 {
				t.Errorf("%d are served by %v", granted, calls)
			}
		}
		b.c.do("DEL", k)
		b.share(k, functions.MaxHolders)
		b.endSlot(k, 7)
		calls := b.inner(func() { want(t, b.call(functions.Renew, k, "w0", long), token) })
		if delete(calls, "config|resetstat"); calls["hmget"] != 2 || calls["hget"] > 4 || calls["hset"] > 1 || calls["hdel"] > 1 {
			t.Errorf("a look through all slots cost %v", calls)
		}
	}, server.Owned())
}
