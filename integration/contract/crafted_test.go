// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

const far = "9999999999999"

// craftedKeys are keys as they are written by hand, each of which was once more than a call could take.
var craftedKeys = map[string][]string{
	"a line of 2^52 places":        {"state", doubles(0, 1<<52, 1, 0, 5, 0)},
	"a line behind 2^53":           {"state", doubles(1<<53, 1<<53+2, 1, 0, 5, 0)},
	"a line at the end of numbers": {"state", doubles(1<<52-1, 1<<52, 1, 0, 5, 0)},
	"marks that point back":        {"state", doubles(0, 9, 9, 0, 5, 0), "w:0", ">0", "w:1", ">0", "w:2", "<0", "w:3", ">99", "at:b", "5"},
	"a token near 2^53":            {"fence", "9007199252740991"},
	"top near 2^53":                {"state", doubles(0, 0, 0, 0, 9007199252740991, 0)},
	"no numbers":                   {"state", doubles(math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN())},
	"no numbers among more":        {"state", doubles(0, 0, 0, 0, 5, 0, math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN())},
	"endless numbers":              {"state", doubles(0, 2, math.Inf(1), math.Inf(1), 5, math.Inf(1)), "w:0", entry(waiting{channel: "ch", owner: "c"})},
	"places between places":        {"state", doubles(0.5, 3.5, 2, 0, 5, 0), "w:0", entry(waiting{channel: "ch", owner: "c"}), "at:b", "1"},
	"holds without the field":      {"state", doubles(0, 0, 0, 0, 5, 0, 7, 0, 0, 0, 9, 0, 0, 0)},
	"a record without an end":      {"state", doubles(0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 9, 5, 1e14, 512) + "why"},
	"a place of another":           {"state", doubles(0, 2, 2, 0, 5, 0), "w:0", entry(waiting{owner: "c"}), "at:b", "0", "at:c", "0"},
	"a crowd without slots":        {"crowd", doubles(1, 1, 1) + "111", "at:b", "h2"},
	"a crowd for ever":             {"crowd", doubles(2, 0, 1e14) + strings.Repeat("1", 1000), "at:b", "h1000"},
	"a crowd that is too large":    {"crowd", doubles(2, 0, 1e14) + strings.Repeat("1", 1001)},
	"a crowd of no kind":           {"crowd", doubles(math.NaN(), math.NaN(), math.NaN()) + "1"},
	"slots of one owner":           {"crowd", doubles(1, 0, 1e13) + "111", "h:1", slotEntry("b"), "h:2", slotEntry("b"), "h:3", slotEntry(strings.Repeat("b", 1500)), "at:b", "h3"},
	"a slot that says too much":    {"crowd", doubles(1, 0, 1e13) + "1", "h:1", slotEntry("b")[:40] + "\xff\xffb", "at:b", "h1"},
	"an entry that says too much":  {"state", doubles(0, 1, 1, 0, 5, 0), "w:0", entry(waiting{owner: "c"})[:32] + "\xff\xff\xff\xffc", "at:c", "0"},
}

// slotEntry is the holder of a slot for long.
func slotEntry(owner string) string { return doubles(1e13, 5, 0, 0, 600_000) + "\x00\x00" + owner }

func TestCraftedKeys(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for name, fields := range craftedKeys {
			for _, call := range slices.Concat(lockCalls, [][]string{{functions.Wait, "b", long}, {functions.Wait, "b", long, "CHANNEL", "ch"},
				{functions.Acquire, "b", long, "VALUE"}, {functions.Leave, "b"}, {functions.Leave, "c"}, {functions.Break, "FORGET"}}) {
				for _, until := range []string{far, "1"} {
					k := b.key(name)
					b.c.do("DEL", k)
					head := []string{"HSET", k, "owner", "a", "until", until, "fence", "5"}
					if fields[0] == "crowd" {
						head = []string{"HSET", k, "until", "0", "fence", "5"}
					}
					b.c.do(append(head, fields...)...)
					got := any(nil)
					calls := b.inner(func() { got = b.call(call[0], k, call[1:]...) })
					if f, bad := got.(failure); bad && !allowed.MatchString(string(f)) {
						t.Errorf("%s: %s: %s", name, call[0], f)
					}
					if n := calls["hget"] + calls["pubsub|shardnumsub"]; n > mostInner(call[0]) {
						t.Errorf("%s: %s looked at %d places", name, call[0], n)
					}
				}
			}
		}
	}, server.Owned())
}

// A mark of a hole never points back: else the calls would go round in it for ever.
func marksPointForward(b *bed, k string) {
	for _, mark := range []string{">0", ">3", ">2", "<0", ">9", ">99999999999999999999", ">0x9", ">"} {
		want(b.tb, b.c.do("HSET", k, "owner", "a", "until", far, "fence", "5", "state", doubles(0, 9, 5, 0, 5, 0), "w:3", mark,
			"w:8", entry(waiting{owner: "b"}), "at:b", "8"), 7)
		want(b.tb, b.call(functions.Wait, k, "b", long), []any{0, anything, "a", 1, functions.WhyHeld, serverMS, 5, 0})
		want(b.tb, b.call(functions.Release, k, "a"), 1)
		want(b.tb, b.call(functions.Release, k, "b"), 1)
		b.expectFree(k)
	}
}
