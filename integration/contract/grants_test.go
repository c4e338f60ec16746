package contract

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// SPUBLISH counts the subscribers of its own node, but the message goes to those at replicas too.
// Who is subscribed there only is passed over, and so it must hear nothing.
func TestWaiterSubscribedAtAReplicaIsNeverGranted(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		b := lay(t, server.Replicated(t, 1, server.WithFlavour(f)))
		replica := dial(t, b.d.Nodes()[1].Addr)
		k, ch := b.key("k"), b.key("channel")
		want(t, replica.do("SSUBSCRIBE", ch), []any{"ssubscribe", ch, 1})
		fence := b.take(k, "a", long)
		got := b.call(functions.Wait, k, "astray", long, functions.OptChannel, ch)
		want(t, got, []any{0, left, "a", 1, functions.WhyHeld, serverMS, fence, 0})
		b.wait(k, "b", "", 2)
		want(t, b.call(functions.Release, k, "a"), 1)
		b.expectOwner(k, "b")
		want(t, b.c.do("WAIT", "1", "10000"), 1)
		replica.silent()
	})
}

// asked rewrites when the waiter at a place of the line asked last, in milliseconds from now.
func (b *bed) asked(key string, place int64, ms int64) {
	b.tb.Helper()
	name := "w:" + itoa(place)
	entry := b.c.do("HGET", key, name).(string)
	want(b.tb, b.c.do("HSET", key, name, entry[:16]+doubles(float64(b.serverMS()+ms))+entry[24:]), 0)
}

// Behind a lock that is held for long, each join drops the dead among the first three: no
// subscriber, and silent for five seconds.
func TestJoinSweepsTheHead(t *testing.T) {
	each(t, func(_ *testing.T, b *bed) { sweepsHead(b, b.key("k")) })
}

func sweepsHead(b *bed, k string) {
	ch := b.key("channel")
	b.subscribe(ch)
	b.take(k, "a", long)
	line := []struct {
		owner, channel string
		silent         bool
	}{{"dead1", "nobody", true}, {"listens", ch, true}, {"fresh", "nobody", false}, {"dead2", "", true}, {"dead3", "nobody", true}}
	for i, w := range line {
		b.wait(k, w.owner, w.channel, i+1)
		if w.silent {
			b.asked(k, int64(i), -functions.PollTTL-1000)
		}
	}
	want(b.tb, b.c.do("HSET", k, "fence", "1000000"), 0) // held for long
	want(b.tb, b.call(functions.Wait, k, "new1", long), []any{0, left, "a", 5, functions.WhyHeld, serverMS, 1000000, 0})
	want(b.tb, b.call(functions.Wait, k, "new2", long), []any{0, left, "a", 5, functions.WhyHeld, serverMS, 1000000, 0})
	// a hole is a place
	want(b.tb, b.call(functions.Wait, k, "new3", long), []any{0, left, "a", 6, functions.WhyHeld, serverMS, 1000000, 0})
	b.expectNoTrace(k, 6)
	for i, owner := range []string{"listens", "fresh", "dead3", "new1", "new2", "new3"} {
		got := b.call(functions.Wait, k, owner, long, functions.OptChannel, ch)
		want(b.tb, got, []any{0, left, "a", i + 1, functions.WhyHeld, serverMS, 1000000, 1})
	}
}

// The shortest leases end in the middle of calls. No call meets, or leaves, half a lock.
func TestShortestLeasesNeverLeaveHalfALock(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k, ch := b.key("k"), b.key("channel")
		b.subscribe(ch)
		calls := [][]string{
			{functions.Acquire, "a", "1"}, {functions.Wait, "b", "1"}, {functions.Wait, "c", "1", "CHANNEL", ch}, {functions.Wait, "d", "1", "HOLD", "h"},
			{functions.Acquire, "e", "1"}, {functions.Release, "a"}, {functions.Wait, "a", "1", "CHANNEL", "nobody"}, {functions.Renew, "c", "1"},
			{functions.Leave, "b"}, {functions.Wait, "b", "2", "CHANNEL", ch, "MINHOLD", "1"}, {functions.AcquireReentrant, "d", "1", "h"}, {functions.Break, "FORGET"},
		}
		for i := range 4000 {
			call := calls[(i*7+i/12)%len(calls)]
			b.c.send(append([]string{"FCALL", call[0], "1", k}, call[1:]...)...)
			b.c.send("HMGET", k, "owner", "until", "fence")
			b.c.send("PTTL", k)
			if got, bad := b.c.receive(ioWithin).(failure); bad && !matches(got, hfjoin) {
				t.Fatalf("call %d, %q: %s", i, call, got)
			}
			fields := b.c.receive(ioWithin)
			if !matches(fields, []any{nil, nil, nil}) && !matches(fields, []any{prefix(""), prefix(""), prefix("")}) {
				t.Fatalf("call %d, %q left %s", i, call, show(fields))
			}
			if pttl := b.c.receive(ioWithin); pttl == int64(-1) {
				t.Fatalf("call %d, %q left a key without a TTL", i, call)
			}
		}
	})
}

// The same where a call takes longer than the lease that it gives: the entries that it passes over
// are as large as they can be.
func TestShortestLeaseBehindLargeEntries(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		nobody := entry(waiting{holds: strings.Repeat("64:"+strings.Repeat("h", 64), 128), channel: "nobody", owner: "x"})
		for _, call := range [][]string{{functions.Acquire, "other", long}, {functions.Wait, "other", long}, {functions.Renew, "other", long}, {functions.Break}, {functions.Leave, "other"}} {
			b.c.do("DEL", k)
			line := []string{"HSET", k, "owner", "a", "until", "1", "fence", "5", "state", doubles(0, 99, 99, 0, 5, 0)}
			for i := range 98 {
				line = append(line, fmt.Sprint("w:", i), nobody)
			}
			last := entry(waiting{ttl: 1, asked: float64(b.serverMS()), owner: "last"})
			want(t, b.c.do(append(line, "w:98", last, "at:last", "98")...), 104)
			got := b.call(call[0], k, call[1:]...)
			fields, pttl := b.c.do("HMGET", k, "owner", "until", "fence"), b.c.do("PTTL", k)
			if whole := matches(fields, []any{prefix(""), prefix(""), prefix("")}); pttl == int64(-1) || !whole && pttl != int64(-2) {
				t.Errorf("%s replied %s and left %s with a TTL of %v", call[0], show(got), show(fields), pttl)
			}
		}
	})
}

// One call passes over 100 places and no more, however many dead waiters there are.
func TestWorkOfACallIsBounded(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "holder", long)
		b.fill(k, "nobody", functions.MaxWaiters)
		for _, call := range [][]string{
			{functions.Leave, "w2500"}, {functions.Wait, "w4999", long, "CHANNEL", "nobody"}, {functions.Release, "holder"}, {functions.Acquire, "x", long},
			{functions.Renew, "x", long}, {functions.Wait, "x", long}, {functions.Release, "x"}, {functions.Leave, "y"}, {functions.Break},
		} {
			calls := b.inner(func() { b.call(call[0], k, call[1:]...) })
			if calls["hget"] > 2*steps+3 || calls["pubsub|shardnumsub"] > steps+4 || calls["hset"] > 1 || calls["hdel"] > 1 {
				t.Errorf("%s executed %v", call[0], calls)
			}
		}
	}, server.Owned())
}

// waiting is an entry of the line, as the library packs it.
type waiting struct {
	ttl, tokens, asked, minimum float64
	holds, channel, owner       string
}

func entry(w waiting) string {
	w.ttl, w.tokens = cmp.Or(w.ttl, 1000), cmp.Or(w.tokens, 1)
	text := []byte(doubles(w.ttl, w.tokens, w.asked, w.minimum))
	text = binary.LittleEndian.AppendUint16(text, uint16(len(w.holds)))
	text = binary.LittleEndian.AppendUint16(text, uint16(len(w.channel)))
	return string(text) + w.holds + w.channel + w.owner
}
