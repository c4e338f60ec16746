package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// No call makes the lease of a joinable lock end earlier than any of its holds was told. One that is
// alone cannot shorten it either: the call may be a late one of a hold that was given back.
func TestLeaseNeverShrinksUnderAnotherHold(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		whole := between{590_000, 600_001}
		hold := func(hold, ttl string, n int) {
			t.Helper()
			want(t, b.call(functions.AcquireReentrant, k, "a", ttl, hold), []any{1, token, number(ttl), n, 1})
		}
		hold("long", long, 1)
		hold("short", "1000", 2)
		want(t, b.c.do("PTTL", k), whole)
		hold("short", "1000", 2)
		want(t, b.call(functions.Renew, k, "a", "1000"), []any{1, token, 1000, 2, 1})
		want(t, b.call(functions.Wait, k, "a", "1000", "", "1", long, "third"), []any{1, token, 1000, 3, 1})
		want(t, b.c.do("PTTL", k), whole)
		want(t, b.call(functions.Inspect, k), []any{1, "a", 3, token, whole, 0})
		for i, id := range []string{"short", "third"} {
			want(t, b.call(functions.Release, k, "a", id), []any{1, 2 - i})
			want(t, b.c.do("PTTL", k), whole)
		}
		want(t, b.call(functions.Renew, k, "a", "1000"), []any{1, token, 1000, 1, 1})
		want(t, b.c.do("PTTL", k), whole)
		b.c.do("DEL", k)

		hold("short", "1000", 1)
		hold("long", long, 2)
		want(t, b.c.do("PTTL", k), whole)
	})
}

// A plain lock cannot be joined, and a joinable one not be taken without a hold id: that is misuse,
// and changes nothing.
func TestPlainLockCannotBeJoined(t *testing.T) {
	plain := [][]string{{functions.Acquire, "a", long}, {functions.Acquire, "a", long, "10"}, {functions.Wait, "a", long, ""}, {functions.Wait, "a", long, "c", "1", long, ""}}
	joinable := [][]string{{functions.AcquireReentrant, "a", long, "h"}, {functions.Wait, "a", long, "c", "1", long, "h"}}
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		refuse := func(first []string, others [][]string) {
			t.Helper()
			for _, other := range others {
				b.c.do("DEL", k)
				want(t, b.call(first[0], k, first[1:]...), []any{1, token, 600000, 1, anything})
				b.refuseJoin(k, other)
			}
			for _, other := range others { // the same for what waits
				b.c.do("DEL", k)
				b.take(k, "holder", long)
				if first[0] != functions.Wait || other[0] != functions.Wait {
					continue
				}
				want(t, b.call(first[0], k, first[1:]...).([]any)[0], 0)
				b.refuseJoin(k, other)
			}
		}
		for _, p := range plain {
			refuse(p, joinable)
		}
		for _, j := range joinable {
			refuse(j, plain)
		}
	})
}

func (b *bed) refuseJoin(key string, call []string) {
	b.tb.Helper()
	before := b.content(key)
	want(b.tb, b.call(call[0], key, call[1:]...), prefix("HFJOIN "))
	want(b.tb, b.content(key), before)
}

// Who waited with a hold id has a lock that can be joined; several ids of one owner share its
// place.
func TestHoldsOfOneOwnerWaitTogether(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		wait := func(hold string, reply any) {
			t.Helper()
			want(t, b.call(functions.Wait, k, "b", long, "", "1", long, hold), reply)
		}
		inLine := []any{0, anything, "a", 1, anything, token, 0}
		b.take(k, "a", long)
		for _, hold := range []string{"h1", "h2", "h3", "h2"} {
			wait(hold, inLine)
		}
		want(t, b.call(functions.Leave, k, "b"), []any{0})
		want(t, b.call(functions.Leave, k, "b", "h4"), []any{0})
		want(t, b.call(functions.Leave, k, "b", "h3"), []any{1})
		want(t, b.call(functions.Leave, k, "b", "h3"), []any{0})
		want(t, b.call(functions.Release, k, "a"), []any{1, 0})
		b.expectLock(k, "b", 2, 0)
		wait("h1", []any{1, token, 600000, 2, 1})
		// it gave up, and the grant crossed with that
		want(t, b.call(functions.Leave, k, "b", "h2"), []any{1})
		want(t, b.call(functions.AcquireReentrant, k, "b", long, "h5"), []any{1, token, 600000, 2, 1})
		want(t, b.call(functions.Release, k, "b", "h1"), []any{1, 1})
		want(t, b.call(functions.Release, k, "b", "h5"), []any{1, 0})
		b.expectFree(k)

		b.take(k, "a", long)
		wait("h1", inLine)
		want(t, b.call(functions.Leave, k, "b", "h1"), []any{1})
		b.expectNoTrace(k, 0)
	})
}

// The ids are written when they change, not by every call: with many of them that would be
// kilobytes to each replica.
func TestHoldsAreWrittenWhenTheyChange(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		id := func(i int) string { return fmt.Sprint(strings.Repeat("h", functions.MaxHoldBytes-3), 100+i) }
		for i := range 100 {
			want(t, b.call(functions.AcquireReentrant, k, "a", long, id(i)), []any{1, token, 600000, i + 1, 1})
		}
		monitor := b.dial(2)
		want(t, monitor.do("MONITOR"), "OK")
		quiet := [][]string{{functions.Renew, "a", long}, {functions.AcquireReentrant, "a", long, id(7)}, {functions.Wait, "b", long, ""},
			{functions.Wait, "b", long, ""}, {functions.Leave, "b"}, {functions.Acquire, "c", long}, {functions.Release, "a", "unknown"}}
		for _, call := range quiet {
			b.call(call[0], k, call[1:]...)
		}
		b.c.do("ECHO", "the end")
		for {
			line := monitor.receive(ioWithin).(string)
			if strings.Contains(line, "the end") {
				break
			}
			if strings.Contains(line, " lua]") && len(line) > 1000 {
				t.Errorf("%d bytes are written: %.200s", len(line), line)
			}
		}
	}, server.Owned())
}
