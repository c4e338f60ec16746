package contract

import (
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

// Serving an ended lease skips waiters that cannot be told, and one of those may be the caller itself.
func TestWaiterThatWasSkippedWhileItAsksJoinsAnew(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "holder", long)
		b.wait(k, "dead", "nobody-1", 1)
		b.wait(k, "asks", "nobody-2", 2)
		b.wait(k, "polls", "", 3)
		b.end(k)
		want(t, b.call(functions.Wait, k, "asks", long, "nobody-2"), []any{0, between{1, 2000}, "polls", 1, anything})
		b.expectLock(k, "polls", 1, 1)
	})
}

// The fast path of release must remember the token as the slow one does: after FUNCTION LOAD REPLACE nothing else knows it.
func TestTokenAheadOfTheClockOutlivesReloadAndRelease(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "a", long, "1000000")
		want(t, b.call(functions.Release, k, "a"), []any{1, 0})
		ahead := b.take(k, "b", long)
		b.load()
		want(t, b.call(functions.Release, k, "b"), []any{1, 0})
		if next := b.take(k, "c", long); next <= ahead {
			t.Fatalf("token %d after %d", next, ahead)
		}
	})
}

// A reserved run that ends later than its lease is not outlived by the clock, so the server must remember it.
func TestTokensGrowPastARunThatOutlivesItsLease(t *testing.T) {
	ends := map[string]func(b *bed, k string){
		"token ahead of the clock": func(*bed, string) {},
		"renewed shorter": func(b *bed, k string) {
			want(b.tb, b.call(functions.Renew, k, "b", "1"), []any{1, token, 1, 1})
		},
		"acquired again, shorter": func(b *bed, k string) {
			want(b.tb, b.call(functions.Acquire, k, "b", "1"), []any{1, token, 1, 1})
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, b *bed) {
				k := b.key("k")
				lease := "1000"
				if name == "token ahead of the clock" {
					b.take(k, "a", long, "1000000")
					want(t, b.call(functions.Release, k, "a"), []any{1, 0})
					lease = "5"
				}
				block := number(lease) * 1000
				first := b.take(k, "b", lease, itoa(block))
				end(b, k)
				eventually(t, "the lease ends", func() bool { return b.c.do("EXISTS", k) == int64(0) })
				if next := b.take(k, "c", long); next < first+block {
					t.Fatalf("token %d is inside the run from %d to %d", next, first, first+block-1)
				}
			})
		})
	}
}

// The same where the run's holder was handed the lock, and lets its lease end.
func TestTokensGrowPastAHandedOverRunThatOutlivesItsLease(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.take(k, "a", long, "1000000")
		want(t, b.call(functions.Wait, k, "b", "50", "", "50000"), []any{0, anything, "a", 1, anything})
		want(t, b.call(functions.Release, k, "a"), []any{1, 0})
		got := b.call(functions.Inspect, k).([]any)
		want(t, got, []any{1, "b", 1, token, between{0, 50}, 0})
		eventually(t, "the lease ends", func() bool { return b.c.do("EXISTS", k) == int64(0) })
		if first, next := got[3].(int64), b.take(k, "c", long); next < first+50_000 {
			t.Fatalf("token %d is inside the run of 50000 from %d", next, first)
		}
	})
}

// A last_fence below the run counts as its first token, even when the server's memory is lost.
func TestLastFenceBelowTheRun(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, waited := range []bool{false, true} {
			k := b.key("k")
			b.take(k, "a", long, "1000000")
			want(t, b.call(functions.Release, k, "a"), []any{1, 0})
			ahead := b.take(k, "b", long)
			if waited {
				b.wait(k, "c", "", 1)
			}
			b.load()
			want(t, b.call(functions.Release, k, "b", "", "1"), []any{1, 0})
			next := b.call(functions.Acquire, k, "c", long).([]any)
			want(t, next, []any{1, between{ahead + 1, 1 << 53}, 600000, 1})
			want(t, b.call(functions.Release, k, "c"), []any{1, 0})
		}
	})
}
