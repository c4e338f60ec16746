package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
)

// notIntegers are what an integer argument must refuse, whatever its bounds.
var notIntegers = []string{"", "0", "-1", "+1", "01", "1.0", "1.5", "1e3", "0x10", "nan", "NaN", "inf", "-inf", " 1", "1 ", "1\n", "1\x00",
	"\x001", "one", "१", "9007199254740992", "9007199254740993", "18446744073709551616", strings.Repeat("9", 512<<10), "1,000"}

// argument is one argument of a function, as a place in calls that are right otherwise.
type argument struct {
	function string
	before   []string
	after    []string
	name     string
	good     []string
	bad      []string
	most     int64 // of an integer
}

func arguments() []argument {
	owner := argument{name: "owner", good: odd(functions.MaxBytes), bad: []string{"", over(functions.MaxBytes), strings.Repeat("x", 512<<10)}}
	hold := argument{name: "hold", good: odd(functions.MaxHoldBytes), bad: []string{"", "*", over(functions.MaxHoldBytes)}}
	unnamed := argument{name: "hold", good: append(odd(functions.MaxHoldBytes), ""), bad: []string{over(functions.MaxHoldBytes)}}
	released := unnamed // '*' means all of an owner's holds there
	unnamed.bad = append([]string{"*"}, unnamed.bad...)
	lastFence := argument{name: "last_fence", most: 1<<53 - 1}
	channel := argument{name: "channel", good: append(odd(functions.MaxBytes), ""), bad: []string{over(functions.MaxBytes)}}
	reason := argument{name: "reason", good: append(odd(functions.MaxBytes), ""), bad: []string{over(functions.MaxBytes)}}
	ttl := argument{name: "ttl_ms", most: functions.MaxTTL}
	block := argument{name: "fence_block", most: functions.MaxBlock}
	fence := argument{name: "fence", most: 1<<53 - 1}
	raised := argument{name: "raised", most: 1<<53 - 1}
	raise := raised.of(functions.Raise, []string{"a", long})
	raise.good = []string{"1"} // it must not be far ahead of the clock either
	maxWait := argument{name: "max_wait_ms", most: functions.MaxTTL}
	return []argument{
		owner.of(functions.Acquire, nil, long), ttl.of(functions.Acquire, []string{"a"}), block.of(functions.Acquire, []string{"a", long}),
		owner.of(functions.AcquireReentrant, nil, long, "h"), ttl.of(functions.AcquireReentrant, []string{"a"}, "h"),
		hold.of(functions.AcquireReentrant, []string{"a", long}),
		owner.of(functions.Renew, nil, long), ttl.of(functions.Renew, []string{"a"}), channel.of(functions.Renew, []string{"a", long}),
		fence.of(functions.Renew, []string{"a", long, "c"}),
		owner.of(functions.Raise, nil, long, "1"), ttl.of(functions.Raise, []string{"a"}, "1"), raise,
		channel.of(functions.Raise, []string{"a", long, "1"}),
		owner.of(functions.Release, nil), released.of(functions.Release, []string{"a"}), lastFence.of(functions.Release, []string{"a", ""}),
		owner.of(functions.Wait, nil, long, "c"), ttl.of(functions.Wait, []string{"a"}, "c"), channel.of(functions.Wait, []string{"a", long}),
		block.of(functions.Wait, []string{"a", long, "c"}), maxWait.of(functions.Wait, []string{"a", long, "c", "1"}),
		unnamed.of(functions.Wait, []string{"a", long, "c", "1", long}),
		owner.of(functions.Leave, nil), unnamed.of(functions.Leave, []string{"a"}), fence.of(functions.Leave, []string{"a", ""}), reason.of(functions.Break, nil),
	}
}

func (a argument) of(function string, before []string, after ...string) argument {
	a.function, a.before, a.after = function, before, after
	if a.most > 0 {
		a.good = []string{"1", fmt.Sprint(a.most)}
		a.bad = append([]string{fmt.Sprint(a.most + 1)}, notIntegers...)
	}
	return a
}

func (a argument) with(value string) []string {
	return append(append(append([]string{}, a.before...), value), a.after...)
}

// odd returns byte strings up to the bound that a careless library would trip over.
func odd(most int) []string {
	all := []string{"x", " ", "a b", "\xff\xfe", "\u0085", "%s %d %n", "%c", "1 2 3 4", "0:", "$(x)", "ключ", "3:abc", ">5", "<0"}
	return append(all, strings.Repeat("y", most), strings.Repeat("\xff", most))
}

func over(most int) string { return strings.Repeat("z", most+1) }

// Every argument is refused outside its bounds by name, with the key as it was: absent, and held
// with a line.
func TestArgumentsOutsideTheirBoundsAreRefused(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		held, free := b.key("held"), b.key("free")
		b.take(held, "a", long)
		b.wait(held, "b", "", 1)
		before := b.c.do("DUMP", held)
		for _, a := range arguments() {
			for _, value := range a.bad {
				for _, k := range []string{held, free} {
					got := b.call(a.function, k, a.with(value)...)
					if !matches(got, prefix("HFARG "+a.name+" must ")) {
						t.Errorf("%s with %s %.40q: %s", a.function, a.name, value, show(got))
					}
				}
			}
		}
		want(t, b.c.do("EXISTS", free), 0)
		want(t, b.c.do("DUMP", held), before)
	})
}

// Text of one is shown in the logs of others, so none of it may end a line or move a cursor.
func TestControlCharactersAreRefused(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k, free := b.key("held"), b.key("free")
		b.take(k, "a", long)
		before := b.content(k)
		for _, a := range arguments() {
			if a.most > 0 {
				continue
			}
			for _, value := range []string{"a\nb", "\r", "\x00", "a\x00", "\x1b[2J", "\x7f", "\t", strings.Repeat("x", 60) + "\x01"} {
				for _, key := range []string{k, free} {
					want(t, b.call(a.function, key, a.with(value)...), failure("HFARG "+a.name+" must not contain control characters"))
				}
			}
		}
		want(t, b.content(k), before)
		want(t, b.c.do("EXISTS", free), 0)
	})
}

func TestArgumentsWithinTheirBoundsAreTaken(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, a := range arguments() {
			for _, value := range a.good {
				k := b.key("k")
				if got := b.call(a.function, k, a.with(value)...); matches(got, prefix("")) {
					t.Errorf("%s with %s %.40q: %s", a.function, a.name, value, show(got))
				}
				b.c.do("DEL", k)
			}
		}
	})
}

// Odd owners and holds come back byte for byte, through the line, a message and inspect.
func TestOddOwnersStayWhatTheyAre(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k, ch := b.key("k"), b.key("channel")
		sub := b.subscribe(ch)
		for _, owner := range odd(functions.MaxBytes) {
			b.take(k, "first", long)
			b.wait(k, owner, ch, 1)
			want(t, b.call(functions.Release, k, "first"), []any{1, 0})
			told := grant(t, sub.message()).owner
			want(t, told, owner)
			want(t, b.call(functions.Inspect, k).([]any)[1], owner)
			want(t, b.call(functions.AcquireReentrant, k+"j", owner, long, "h"), []any{1, token, 600000, 1, 1})
			for _, hold := range odd(functions.MaxHoldBytes) {
				want(t, b.call(functions.AcquireReentrant, k+"j", owner, long, hold), []any{1, token, 600000, 2, 1})
				want(t, b.call(functions.Release, k+"j", owner, hold), []any{1, 1})
			}
			want(t, b.call(functions.Release, k+"j", owner, "h"), []any{1, 0})
			fence := b.call(functions.Break, k, owner).([]any)[2]
			want(t, sub.message(), fmt.Sprintf("broken %d %d %s %s", fence, len(owner), owner, owner))
			b.expectFree(k)
		}
	})
}

// A run of tokens is no longer than its lease in microseconds.
func TestFenceBlockIsBoundByTheLease(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		for _, f := range [][]string{{functions.Acquire, "a", "5"}, {functions.Wait, "a", "5", ""}} {
			want(t, b.call(f[0], k, append(f[1:], "5001")...), failure("HFARG fence_block must be an integer from 1 to 5000"))
			want(t, b.c.do("EXISTS", k), 0)
			want(t, b.call(f[0], k, append(f[1:], "5000")...), []any{1, token, 5, 1, between{1, 5000}})
			b.c.do("DEL", k)
		}
	})
}

// The number of arguments and of keys is checked before anything is read.
func TestArityIsChecked(t *testing.T) {
	arity := map[string][2]int{functions.Acquire: {2, 4}, functions.AcquireReentrant: {3, 4}, functions.Renew: {2, 5}, functions.Raise: {3, 4}, functions.Release: {1, 3},
		functions.Wait: {3, 7}, functions.Leave: {1, 3}, functions.Break: {0, 1}, functions.Inspect: {0, 0}, functions.AcquireAll: {3, 102}, functions.Memory: {0, 3}, functions.ReadVersion: {0, 0}}
	each(t, func(t *testing.T, b *bed) {
		for _, name := range functions.Names() {
			bounds, known := arity[name]
			if !known {
				t.Errorf("no arity is known here for %s", name)
			}
			for n := range bounds[1] + 3 {
				if n >= bounds[0] && n <= bounds[1] {
					continue
				}
				args := strings.Fields(strings.Repeat("1 ", n))
				want(t, b.call(name, b.key("k"), args...), prefix("HFARG wrong number of arguments, expected: "))
			}
		}
		want(t, b.c.do("EXISTS", b.key("k")), 0)
	})
}

func TestKeysAreChecked(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		for _, name := range functions.Names() {
			if name == functions.ReadVersion || name == functions.Memory {
				want(t, b.c.do("FCALL", name, "2", k, k+"2"), failure("HFARG at most one key is possible, to choose the node"))
				continue
			}
			if name == functions.AcquireAll {
				continue // TestArgumentsOfAll
			}
			for _, keys := range [][]string{{"0"}, {"2", k, k + "2"}, {"2", k, k}} {
				call := append([]string{"FCALL", name}, keys...)
				want(t, b.c.do(append(call, "a", long, "c")...), failure("HFARG exactly one key is needed, the lock"))
			}
			want(t, b.call(name, "", "a", long, "c"), failure("HFARG key must not be empty"))
		}
		want(t, b.c.do("EXISTS", k, k+"2"), 0)
	})
}
