package contract

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
)

// step is one call and what it must reply.
type step struct {
	function string
	args     []string
	reply    any
}

// scenarios show the shape of every reply of every function that needs neither a message nor time.
// Each starts with no key, and 'HSET' and the like stand for what others do to the key. What the
// calls do is shown by the model.
var scenarios = map[string][]step{
	"plain": {
		{functions.Renew, []string{"a", long}, gone},
		{functions.Release, []string{"a"}, gone},
		{functions.Leave, []string{"a"}, gone},
		{functions.Break, nil, gone},
		{functions.Inspect, nil, free},
		{functions.Acquire, []string{"a", long}, token},
		{functions.Acquire, []string{"a", long}, token},
		{functions.Acquire, []string{"b", long}, busy("a", 0)},
		{functions.Renew, []string{"a", long}, token},
		{functions.Renew, []string{"a", long, "FENCE", "1"}, busy("a", 0)},
		{functions.Renew, []string{"a", long, "HOLD", "h"}, busy("a", 0)},
		{functions.Wait, []string{"c", long}, inLine("a", 1)},
		{functions.Wait, []string{"c", long}, inLine("a", 1)},
		{functions.Wait, []string{"d", long, "CHANNEL", "ch"}, inLine("a", 2)},
		{functions.Wait, []string{"d", long, "CHANNEL", "ch"}, inLine("a", 2)},
		{functions.Acquire, []string{"c", long}, busy("a", 2)},
		{functions.Inspect, nil, []any{1, "a", 1, token, left, 2, "held"}},
		{functions.Leave, []string{"c"}, 1},
		{functions.Leave, []string{"c"}, busy("a", 1)},
		{functions.Leave, []string{"d"}, 1},
		{functions.Release, []string{"b"}, busy("a", 0)},
		{functions.Release, []string{"a", "HOLD", "h"}, hfjoin},
		{functions.Acquire, []string{"a", long}, token},
		{functions.AcquireReentrant, []string{"a", long, "h"}, hfjoin},
		{functions.Release, []string{"a"}, 1},
		{"EXISTS", nil, 0},
	},
	"a run": {
		{functions.Acquire, []string{"a", long, "TOKENS", "1000"}, []any{1, token, 1000}},
		{functions.Acquire, []string{"a", long, "tokens", "10"}, []any{1, token, 1000}},
		{functions.Acquire, []string{"a", long}, token},
		{functions.Renew, []string{"a", long}, token},
		{functions.Release, []string{"a", "LAST", "1"}, 1},
		{functions.Wait, []string{"a", long, "MAXWAIT", "1", "TOKENS", "5"}, []any{1, token, 5}},
	},
	"joinable": {
		{functions.AcquireReentrant, []string{"a", long, "h1"}, []any{1, token, 1}},
		{functions.AcquireReentrant, []string{"a", long, "h1"}, []any{1, token, 1}},
		{functions.AcquireReentrant, []string{"a", long, "h2"}, []any{1, token, 2}},
		{functions.Wait, []string{"a", long, "HOLD", "h3"}, []any{1, token, 3}},
		{functions.AcquireReentrant, []string{"b", long, "h1"}, busy("a", 0)},
		{functions.Acquire, []string{"a", long}, hfjoin},
		{functions.Release, []string{"a"}, hfjoin},
		{functions.Renew, []string{"a", long}, token},
		{functions.Renew, []string{"a", long, "HOLD", "h2"}, token},
		{functions.Renew, []string{"a", long, "HOLD", "h4"}, busy("a", 0)},
		{functions.Inspect, nil, []any{1, "a", 3, token, left, 0, "held"}},
		{functions.Release, []string{"a", "HOLD", "h3"}, []any{1, 2}},
		{functions.Release, []string{"a", "HOLD", "h3"}, []any{1, 2}},
		{functions.Leave, []string{"a", "HOLD", "h2"}, 1},
		{functions.Release, []string{"a", "HOLD", "h1"}, []any{1, 0}},
		{functions.AcquireReentrant, []string{"a", long, "h1"}, []any{1, token, 1}},
		{functions.Release, []string{"a", "ALL"}, 1},
		{"EXISTS", nil, 0},
	},
	"a line is waited for in two ways": {
		{functions.Acquire, []string{"a", long}, token},
		{functions.Wait, []string{"b", long, "HOLD", "x"}, inLine("a", 1)},
		{functions.Acquire, []string{"b", long}, busy("a", 1)},
		{functions.Wait, []string{"b", long}, prefix("HFJOIN this owner waits for the lock with a HOLD")},
	},
	"broken": {
		{functions.Acquire, []string{"a", long}, token},
		{functions.Break, []string{"OWNER", "b"}, busy("a", 0)},
		{functions.Break, []string{"OWNER", "a", "REASON", "it hung"}, []any{1, "a", token}},
		{functions.Break, []string{"OWNER", "a", "REASON", "it hung"}, gone},
		{functions.Renew, []string{"a", long}, []any{0, 0, "", 0, "broken it hung"}},
		{functions.Release, []string{"a"}, []any{0, 0, "", 0, "broken it hung"}},
		{functions.Leave, []string{"a"}, []any{0, 0, "", 0, "broken it hung"}},
		{functions.Renew, []string{"b", long}, gone},
		{functions.Acquire, []string{"b", long}, token},
		{functions.Renew, []string{"a", long}, []any{0, left, "b", 0, "broken it hung"}},
		{functions.Break, []string{"OWNER", "a", "FORGET"}, []any{1, "a", token}},
		{functions.Renew, []string{"a", long}, busy("b", 0)},
		{functions.Break, nil, []any{1, "b", token}},
		{functions.Renew, []string{"b", long}, []any{0, 0, "", 0, "broken"}},
		{functions.Break, []string{"FORGET"}, []any{1, "b", token}},
		{"EXISTS", nil, 0},
	},
	"kept": {
		{functions.Acquire, []string{"a", long, "MINHOLD", long}, token},
		{functions.Acquire, []string{"b", long}, busy("a", 0)},
		{functions.Release, []string{"a"}, 1},
		{functions.Release, []string{"a"}, []any{0, left, "a", 0, "kept"}},
		{functions.Acquire, []string{"a", long}, []any{0, left, "a", 0, "kept"}},
		{functions.Inspect, nil, []any{0, "a", 0, token, left, 0, "kept"}},
		{functions.Wait, []string{"b", long}, []any{0, left, "a", 1, "kept", serverMS, token, 0}},
		{functions.Wait, []string{"c", long, "MAXWAIT", "5000"}, []any{0, left, "a", -2, "kept", serverMS, token, 0}},
		{functions.Break, nil, []any{1, "a", token}},
		{functions.Inspect, nil, []any{1, "b", 1, token, between{1, 2001}, 0, "held"}},
	},
	"ended lease with a line": {
		{functions.Acquire, []string{"a", long}, token},
		{functions.Wait, []string{"b", long}, inLine("a", 1)},
		{functions.Wait, []string{"c", long}, inLine("a", 2)},
		{"HSET", []string{"until", "1"}, 0},
		{functions.Inspect, nil, []any{0, "", 0, 0, 0, 2, "serving"}},
		{functions.Acquire, []string{"d", long}, []any{0, between{1, 2001}, "b", 1, "held"}},
		{"HSET", []string{"until", "1"}, 0},
		{functions.Release, []string{"b"}, []any{0, between{1, 2001}, "c", 0, "held"}},
		{"HSET", []string{"until", "1"}, 0},
		{functions.Renew, []string{"d", long}, gone},
		{"EXISTS", nil, 0},
	},
}

// Both protocols get the same integers and strings.
func TestReplies(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, resp := range []int{2, 3} {
			c := b.dial(resp)
			for name, steps := range scenarios {
				t.Run(fmt.Sprintf("RESP%d/%s", resp, name), func(t *testing.T) {
					k := b.key(fmt.Sprint(resp, name))
					for i, s := range steps {
						if got := c.run(s, k); !matches(got, s.reply) {
							t.Fatalf("step %d, %s %q:\ngot  %s\nwant %s", i, s.function, s.args, show(got), show(s.reply))
						}
						if pttl := b.c.do("PTTL", k); pttl == int64(-1) {
							t.Fatalf("step %d, %s %q left a key without a TTL", i, s.function, s.args)
						}
					}
					b.c.do("DEL", k)
				})
			}
			want(t, c.do("FCALL", functions.ReadVersion, "0"), functions.Version)
			want(t, c.do("FCALL_RO", functions.ReadVersion, "1", b.key("any")), functions.Version)
			want(t, c.do("FCALL_RO", functions.Inspect, "1", b.key("none")), free)
		}
	})
}

func (c *conn) run(s step, key string) any {
	c.tb.Helper()
	switch s.function {
	case "HSET", "EXISTS":
		return c.do(append([]string{s.function, key}, s.args...)...)
	}
	return c.fcall(s.function, key, s.args...)
}

// A repeat writes, so that a WAIT after it covers the first call too: each one moves the
// replication offset.
func TestRepeatsWrite(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		for _, call := range [][]string{
			{functions.Acquire, "a", long}, {functions.Wait, "a", long}, {functions.Renew, "a", long}, {functions.Renew, "a", long, "FENCE", ""},
			{functions.Wait, "b", long}, {functions.Wait, "b", long, "CHANNEL", k}, {functions.Wait, "c", long, "HOLD", "h"},
		} {
			if len(call) == 5 && call[4] == "" {
				call[4] = b.c.do("HGET", k, "fence").(string)
			}
			b.call(call[0], k, call[1:]...)
			before := b.dirty()
			b.call(call[0], k, call[1:]...)
			if b.dirty() == before {
				t.Errorf("the repeat of %v wrote nothing", call)
			}
		}
	})
}
