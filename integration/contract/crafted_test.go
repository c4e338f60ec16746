package contract

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

const whole = "owner a until 99999999999999 fence 5 state "

// craftedKeys are keys as they are written by hand, each of which was once more than a call could take.
var craftedKeys = map[string]string{
	"a line of 2^52 places":         whole + `"0 4503599627370496 1 0 5 0"`,
	"a line behind 2^53":            whole + `"9007199254740992 9007199254740994 1 0 5 0"`,
	"the same, as a state was once": whole + `"9007199254740992 9007199254740994 1 0 5 "`,
	"a line at the end of numbers":  whole + `"4503599627370495 4503599627370496 1 0 5 0"`,
	"marks that point back":         whole + `"0 9 9 0 5 0" w:0 >0 w:1 >0 w:2 <0 w:3 >99 at:b 5`,
	"a token near 2^53":             "owner a until 99999999999999 fence 9007199252740991",
	"top near 2^53":                 whole + `"0 0 0 0 9007199252740991 0"`,
	"holds without the field":       whole + `"0 0 0 0 5 7"`,
	"a place of another":            whole + `"0 2 2 0 5 0" w:0 "1000 1 1 0 0 c" at:b 0 at:c 0`,
}

func TestCraftedKeys(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for name, text := range craftedKeys {
			for _, call := range slices.Concat(lockCalls, [][]string{{functions.Wait, "b", long, ""}, {functions.Leave, "b"}, {functions.Leave, "c"}}) {
				for _, until := range []string{"99999999999999", "1"} {
					k := b.key(name)
					b.c.do("DEL", k)
					b.c.do(append([]string{"HSET", k}, words(strings.Replace(text, "99999999999999", until, 1))...)...)
					got := any(nil)
					calls := b.inner(func() { got = b.call(call[0], k, call[1:]...) })
					if f, bad := got.(failure); bad && !allowed.MatchString(string(f)) {
						t.Errorf("%s: %s: %s", name, call[0], f)
					}
					if n := calls["hget"] + calls["pubsub|shardnumsub"]; n > mostInner {
						t.Errorf("%s: %s looked at %d places", name, call[0], n)
					}
				}
			}
		}
	}, server.Owned())
}

// A mark of a hole never points back: else the calls would go round in it for ever.
func TestMarksOnlyPointForward(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		for _, mark := range []string{">0", ">3", ">2", "<0", ">9", ">99999999999999999999", ">0x9", ">"} {
			want(t, b.c.do("HSET", k, "owner", "a", "until", "99999999999999", "fence", "5", "state", "0 9 5 0 5 0", "w:3", mark, "w:8", "1000 1 1 0 0 b", "at:b", "8"), 7)
			want(t, b.call(functions.Wait, k, "b", long, ""), []any{0, anything, "a", 1, anything, 5, 0})
			want(t, b.call(functions.Release, k, "a"), []any{1, 0})
			want(t, b.call(functions.Release, k, "b"), []any{1, 0})
			b.expectFree(k)
		}
	})
}

// words splits at blanks outside of double quotes.
func words(text string) (all []string) {
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}
