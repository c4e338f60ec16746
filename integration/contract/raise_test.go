package contract

import (
	"testing"

	"github.com/holdfast-go/holdfast/functions"
)

// raise calls holdfast_raise.
func (b *bed) raise(k, owner string, to int64, more ...string) any {
	b.tb.Helper()
	return b.call(functions.Raise, k, append([]string{owner, long, itoa(to)}, more...)...)
}

// A token that is raised is the lock's from then on, and all that come later are above it.
func TestATokenIsRaised(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.load() // forgets the tokens of the tests before this one
		defer b.load()
		first := b.take(k, "a", "1000")
		high := first + 5_000_000
		want(t, b.raise(k, "a", high), []any{1, between{high, high}, 600000, 1, 1})
		want(t, b.c.do("PTTL", k), between{590_000, 600_001})
		want(t, b.raise(k, "a", first), []any{1, between{high, high}, 600000, 1, 1})
		want(t, b.call(functions.Acquire, k, "a", long), []any{1, between{high, high}, 600000, 1, 1})
		want(t, b.call(functions.Renew, k, "a", long, "", itoa(high)), []any{1, between{high, high}, 600000, 1, 1})
		want(t, b.call(functions.Wait, k, "b", long, ""), []any{0, anything, "a", 1, anything, between{high, high}, 0})
		want(t, b.call(functions.Release, k, "a"), []any{1, 0})
		want(t, b.call(functions.Inspect, k), []any{1, "b", 1, between{high + 1, high + 1}, anything, 0})
		want(t, b.call(functions.Release, k, "b"), []any{1, 0})
		want(t, b.c.do("EXISTS", k), 0)
		above := between{high + 2, high + 1_000_000}
		want(t, b.call(functions.Acquire, k, "c", long), []any{1, above, 600000, 1, 1})
		b.c.do("DEL", k)
		want(t, b.call(functions.Acquire, b.key("other"), "c", long), []any{1, above, 600000, 1, 1})
	})
}

// Whoever does not have the lock raises nothing, and an ended lease is not revived.
func TestOnlyTheHolderRaises(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		want(t, b.raise(k, "a", 1), []any{0, 0, "", 0})
		want(t, b.c.do("EXISTS", k), 0)
		fence := b.take(k, "a", long)
		want(t, b.raise(k, "b", fence+1000), []any{0, between{1, 600_000}, "a", 0})
		want(t, b.call(functions.Inspect, k), []any{1, "a", 1, between{fence, fence}, anything, 0})
		b.call(functions.Wait, k, "b", long, "")
		want(t, b.call(functions.Renew, k, "a", "1"), []any{1, anything, 1, 1, anything})
		eventually(t, "the lease is over", func() bool { return b.call(functions.Inspect, k).([]any)[0] == int64(0) })
		want(t, b.raise(k, "a", fence+1000), []any{0, between{1, 2000}, "b", 0})
		b.c.do("DEL", k)
		b.c.do("SET", k, theirs, "PX", long)
		want(t, b.raise(k, theirs, fence), []any{0, between{1, 600_000}, theirs, 0})
	})
}

// A run that was reserved ends with the token that is raised above it.
func TestARunIsRaised(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.load()
		defer b.load()
		fence := b.take(k, "a", long, "1000")
		want(t, b.raise(k, "a", fence+400), []any{1, between{fence + 400, fence + 400}, 600000, 1, 600})
		want(t, b.raise(k, "a", fence+5_000_000), []any{1, between{fence + 5_000_000, fence + 5_000_000}, 600000, 1, 1})
		want(t, b.call(functions.Release, k, "a"), []any{1, 0})
	})
}

// A token from a clock that is far ahead is refused, and changes nothing.
func TestATokenFarAheadIsRefused(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		fence := b.take(k, "a", long)
		far := b.serverMS()*1000 + 70_000_000
		want(t, b.raise(k, "a", far), failure("HFARG raised must be no more than 60 s ahead of the clock of this server"))
		want(t, b.call(functions.Inspect, k), []any{1, "a", 1, between{fence, fence}, anything, 0})
	})
}

// It is a renewal: the channel is left with the lock, and a break is told there.
func TestARaiseLeavesTheChannel(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		fence := b.take(k, "a", long)
		want(t, b.raise(k, "a", fence, k+":channel"), []any{1, between{fence, fence}, 600000, 1, 1})
		want(t, b.c.do("HGET", k, "channel"), k+":channel")
		want(t, b.raise(k, "a", fence), []any{1, between{fence, fence}, 600000, 1, 1})
		want(t, b.c.do("HGET", k, "channel"), k+":channel")
	})
}
