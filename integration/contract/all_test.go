package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// all calls holdfast_acquire_all.
func (b *bed) all(keys []string, ttl, guard string, owners ...string) any {
	b.tb.Helper()
	call := append([]string{"FCALL", functions.AcquireAll, fmt.Sprint(len(keys))}, keys...)
	return b.c.do(append(append(call, ttl, guard), owners...)...)
}

func TestAllOfSeveralLocksAreTaken(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		x, y, z := b.key("x"), b.key("y"), b.key("z")
		got := b.all([]string{z, x, y}, long, "", "a", "b", "a")
		want(t, got, []any{1, 600000, token, token, token})
		fences := got.([]any)[2:]
		want(t, b.call(functions.Inspect, z), []any{1, "a", 1, fences[0], between{590_000, 600_000}, 0})
		want(t, b.call(functions.Inspect, x), []any{1, "b", 1, fences[1], between{590_000, 600_000}, 0})
		want(t, b.call(functions.Inspect, y), []any{1, "a", 1, fences[2], between{590_000, 600_000}, 0})
		want(t, fences[1].(int64) > fences[0].(int64) && fences[2].(int64) > fences[1].(int64), true)
		want(t, b.c.do("PTTL", x), between{590_000, 600_001})

		// A repeat: the same tokens, and the leases start anew.
		want(t, b.all([]string{z, x, y}, "31536000000", "", "a", "b", "a"), append([]any{1, int64(31536000000)}, fences...))
		want(t, b.c.do("PTTL", y), between{31535990_000, 31536000_001})
		want(t, b.call(functions.Release, x, "b"), []any{1, 0})
		want(t, b.c.do("EXISTS", x), 0)
		want(t, b.call(functions.Release, y, "a"), []any{1, 0})
		want(t, b.call(functions.Release, z, "a"), []any{1, 0})
	})
}

// One that is not to be had is named, and nothing is taken; what an owner had before it has still.
func TestNoneOfSeveralLocksIsTaken(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		x, y, z := b.key("x"), b.key("y"), b.key("z")
		fence := b.take(y, "other", long)
		want(t, b.all([]string{x, y, z}, long, "", "a", "a", "a"), []any{0, between{590_000, 600_000}, "other", 0, 2})
		want(t, b.c.do("EXISTS", x, z), 0)
		b.wait(y, "w", "", 1)
		want(t, b.all([]string{x, y}, long, "", "a", "a"), []any{0, between{590_000, 600_000}, "other", 1, 2})
		want(t, b.call(functions.Inspect, y), []any{1, "other", 1, between{fence, fence}, anything, 1})
		b.take(x, "a", "10000")
		want(t, b.all([]string{x, y}, long, "", "a", "a"), []any{0, anything, "other", 1, 2})
		want(t, b.c.do("PTTL", x), between{1, 10_001})
		b.call(functions.Release, y, "other")
		want(t, b.all([]string{x, y}, long, "", "a", "a"), []any{0, between{1, 2000}, "w", 0, 2})
		b.call(functions.Release, y, "w")
		want(t, b.all([]string{x, y}, long, "", "a", "a"), []any{1, 600000, token, token})

		// A plain string of another service, a joinable lock of the same owner, and no lock at all.
		b.c.do("SET", z, theirs, "PX", long)
		w := b.key("free")
		want(t, b.all([]string{w, z}, long, "", "a", "a"), []any{0, between{1, 600_000}, theirs, 0, 2})
		b.c.do("DEL", z)
		b.call(functions.AcquireReentrant, z, "a", long, "h")
		want(t, b.all([]string{w, z}, long, "", "a", "a"), prefix("HFJOIN "))
		b.c.do("DEL", z)
		b.c.do("RPUSH", z, "1")
		want(t, b.all([]string{w, z}, long, "", "a", "a"), prefix("HFTYPE "))
		b.c.do("DEL", z)
		want(t, b.c.do("EXISTS", w), 0)
	})
}

// A lease that is over is passed on to who waits, and does not count as free.
func TestAllOvertakeNoLine(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		x, y := b.key("x"), b.key("y")
		b.take(y, "dead", long)
		b.wait(y, "w", "", 1)
		b.end(y)
		want(t, b.all([]string{x, y}, long, "", "a", "a"), []any{0, between{1, 2000}, "w", 0, 2})
		want(t, b.c.do("EXISTS", x), 0)
	})
}

func TestAllAreGuarded(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		x, y := b.key("x"), b.key("y")
		b.load()
		want(t, b.all([]string{x, y}, "1000", "600000", "a", "a"), []any{0, between{1, 600_000}, "", 0, 1})
		want(t, b.c.do("EXISTS", x, y), 0)
		b.all([]string{x, y}, "1000", "1000", "a", "a")
		eventually(t, "the memory is old enough", func() bool {
			return matches(b.all([]string{x, y}, "1000", "1000", "a", "a"), []any{1, 1000, token, token})
		})
		want(t, b.all([]string{x, y}, "1001", "", "a", "a"), failure("HFARG ttl_ms must not be more than the guard of the lock, 1000"))
		want(t, b.all([]string{x}, "1001", "1000", "a"), failure("HFARG guard_ms must not be less than ttl_ms"))
	})
}

// Bad keys and arguments are named, and change nothing.
func TestArgumentsOfAll(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		x, y := b.key("x"), b.key("y")
		want(t, b.all(nil, long, "", "a"), failure("HFARG 1 to 100 keys are needed, the locks"))
		many, owners := []string{}, []string{}
		for i := range functions.MaxLocks + 1 {
			many, owners = append(many, b.key(fmt.Sprint("many", i))), append(owners, "a")
		}
		want(t, b.all(many, long, "", owners...), failure("HFARG 1 to 100 keys are needed, the locks"))
		want(t, b.all([]string{x, ""}, long, "", "a", "a"), failure("HFARG key must not be empty"))
		want(t, b.all([]string{x, y, x}, long, "", "a", "a", "a"), failure("HFARG keys must differ"))
		want(t, b.all([]string{x, y}, long, "", "a"), failure("HFARG owner is needed for each of the keys"))
		want(t, b.all([]string{x}, long, "", "a", "a"), failure("HFARG owner is needed for each of the keys"))
		for _, bad := range notIntegers {
			want(t, b.all([]string{x, y}, bad, "", "a", "a"), prefix("HFARG ttl_ms must "))
			if bad != "" {
				want(t, b.all([]string{x, y}, long, bad, "a", "a"), prefix("HFARG guard_ms must "))
			}
		}
		for _, bad := range []string{"", "a\n", over(functions.MaxBytes)} {
			want(t, b.all([]string{x, y}, long, "", "a", bad), prefix("HFARG owner must "))
		}
		want(t, b.c.do("EXISTS", x, y), 0)
		got := b.all(many[1:], long, "", owners[1:]...).([]any)
		want(t, int64(len(got)), 2+functions.MaxLocks)
		for _, k := range many[1:] {
			b.c.do("DEL", k)
		}
	})
}

// Whatever stands in one of the keys, the answer is one of the contract's, and no key of another is changed.
func TestAllWithAHostileKey(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		x, y := b.key("x"), b.key("y")
		for _, fields := range [][]string{{"owner", "a"}, {"owner", "a", "until", "x", "fence", "1"}, {"until", "1", "fence", "1"},
			{"owner", "a", "until", "99999999999999", "fence", "1", "state", "1 0 0 0 0 0"}, {"owner", strings.Repeat("x", 600), "until", "1", "fence", "1"}} {
			b.c.do(append([]string{"HSET", y}, fields...)...)
			want(t, b.all([]string{x, y}, long, "", "a", "a"), failure("HFTYPE the key holds a hash that is not a lock"))
			want(t, b.c.do("EXISTS", x), 0)
			b.c.do("DEL", y)
		}
	})
}

// Beside a crafted key too, all are taken or none.
func TestAllBesideACraftedKey(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for name, text := range craftedKeys {
			for _, until := range []string{"99999999999999", "1"} {
				for _, owner := range []string{"a", "b"} {
					x, y := b.key("x"), b.key("y")
					for _, keys := range [][]string{{x, y}, {y, x}} {
						b.c.do("DEL", x, y)
						b.c.do(append([]string{"HSET", y}, words(strings.Replace(text, "99999999999999", until, 1))...)...)
						got := b.all(keys, long, "", owner, owner)
						if f, bad := got.(failure); bad && !allowed.MatchString(string(f)) {
							t.Errorf("%s: %s", name, f)
						}
						if matches(got, []any{1, 600000, anything, anything}) {
							b.expectLock(x, owner, 1, 0)
							want(t, b.call(functions.Inspect, y), []any{1, owner, 1, anything, between{590_000, 600_000}, anything})
							want(t, b.c.do("PTTL", y), between{590_000, 660_001})
						} else {
							want(t, b.c.do("EXISTS", x), 0)
						}
					}
				}
			}
		}
	})
}

// The dead waiters of all lines together are passed over as those of one are: a hundred in a call.
func TestAllWithDeadLines(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		keys, owners := []string{}, []string{}
		for i := range 5 {
			k := b.key(fmt.Sprint(i))
			keys, owners = append(keys, k), append(owners, "a")
			b.take(k, "dead", long)
			for j := range 100 {
				b.wait(k, fmt.Sprint("w", j), "nobody"+k, j+1)
			}
			b.end(k)
		}
		for n := range keys {
			got := any(nil)
			calls := b.inner(func() { got = b.all(keys, long, "", owners...) })
			if looked := calls["hget"] + calls["pubsub|shardnumsub"]; looked > mostInner {
				t.Errorf("it looked at %d places", looked)
			}
			if n < len(keys)-1 {
				want(t, got, []any{0, 0, "", 100, n + 2})
				want(t, b.c.do("EXISTS", keys[0]), 0)
			} else {
				want(t, got, []any{1, 600000, token, token, token, token, token})
			}
		}
	}, server.Owned())
}
