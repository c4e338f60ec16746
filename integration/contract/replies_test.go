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

// scenarios show every reply of every function that needs neither a message nor time. Each starts
// with no key, and 'HSET' and the like stand for what others do to the key.
var scenarios = map[string][]step{
	"acquire": {
		{functions.Acquire, []string{"a", long}, []any{1, token, 600000, 1, 1}},
		{functions.Acquire, []string{"a", year}, []any{1, token, number(year), 1, 1}},
		{functions.Acquire, []string{"a", long, "1000000"}, []any{1, token, 600000, 1, 1000000}},
		{functions.Acquire, []string{"a", long, "10"}, []any{1, token, 600000, 1, 1000000}},
		{functions.Renew, []string{"a", long}, []any{1, token, 600000, 1, 1000000}},
		{functions.Acquire, []string{"b", long}, []any{0, held, "a", 0}},
		{functions.Wait, []string{"c", long, ""}, []any{0, held, "a", 1, anything, token, anything}},
		{functions.Acquire, []string{"b", long}, []any{0, held, "a", 1}},
	},
	"reentrant": {
		{functions.AcquireReentrant, []string{"a", long, "h1"}, []any{1, token, 600000, 1, 1}},
		{functions.AcquireReentrant, []string{"a", long, "h1"}, []any{1, token, 600000, 1, 1}},
		{functions.AcquireReentrant, []string{"a", long, "h2"}, []any{1, token, 600000, 2, 1}},
		{functions.Acquire, []string{"a", long}, prefix("HFJOIN ")},
		{functions.Wait, []string{"a", long, ""}, prefix("HFJOIN ")},
		{functions.Wait, []string{"a", long, "", "1", long, "h3"}, []any{1, token, 600000, 3, 1}},
		{functions.Renew, []string{"a", long}, []any{1, token, 600000, 3, 1}},
		{functions.AcquireReentrant, []string{"b", long, "h1"}, []any{0, held, "a", 0}},
		{functions.Inspect, nil, []any{1, "a", 3, token, held, 0}},
		{functions.Release, []string{"a"}, []any{1, 3}},
		{functions.Release, []string{"a", "h3"}, []any{1, 2}},
		{functions.Release, []string{"a", "h3"}, []any{1, 2}},
		{functions.Release, []string{"a", "unknown"}, []any{1, 2}},
		{functions.Release, []string{"a", "h1"}, []any{1, 1}},
		{functions.Release, []string{"b", "h2"}, []any{0, held, "a", 0}},
		{functions.Release, []string{"a", "h2"}, []any{1, 0}},
		{functions.Release, []string{"a", "h2"}, []any{0, 0, "", 0}},
	},
	"a hold upon a plain acquire": {
		{functions.Acquire, []string{"a", long}, []any{1, token, 600000, 1, 1}},
		{functions.AcquireReentrant, []string{"a", long, "h"}, prefix("HFJOIN ")},
		{functions.Wait, []string{"a", long, "", "1", long, "h"}, prefix("HFJOIN ")},
		{functions.Release, []string{"a", "h"}, []any{1, 1}},
		{functions.Release, []string{"a"}, []any{1, 0}},
	},
	"renew": {
		{functions.Renew, []string{"a", long}, []any{0, 0, "", 0}},
		{"EXISTS", nil, 0},
		{functions.Acquire, []string{"a", "1000000"}, []any{1, token, 1000000, 1, 1}},
		{functions.Renew, []string{"a", long}, []any{1, token, 600000, 1, 1}},
		{functions.Inspect, nil, []any{1, "a", 1, token, held, 0}},
		{functions.Renew, []string{"a", long, "channel"}, []any{1, token, 600000, 1, 1}},
		{functions.Renew, []string{"b", long}, []any{0, held, "a", 0}},
	},
	"release": {
		{functions.Release, []string{"a"}, []any{0, 0, "", 0}},
		{functions.Acquire, []string{"a", long}, []any{1, token, 600000, 1, 1}},
		{functions.Release, []string{"b"}, []any{0, held, "a", 0}},
		{functions.Release, []string{"a", "h"}, []any{1, 1}},
		{functions.Release, []string{"a"}, []any{1, 0}},
		{"EXISTS", nil, 0},
	},
	"release of a reserved run": {
		{functions.Acquire, []string{"a", long, "10"}, []any{1, token, 600000, 1, 10}},
		{functions.Release, []string{"a"}, []any{1, 0}},
		{"EXISTS", nil, 0},
	},
	"release that says the last token": {
		{functions.Acquire, []string{"a", long, "10"}, []any{1, token, 600000, 1, 10}},
		{functions.Release, []string{"a", "h", "9007199254740991"}, []any{1, 1}},
		{functions.Release, []string{"b", "", "1"}, []any{0, held, "a", 0}},
		{functions.Release, []string{"a", "", "1"}, []any{1, 0}},
		{"EXISTS", nil, 0},
	},
	"wait": {
		{functions.Wait, []string{"a", long, "", "5", "1"}, []any{1, token, 600000, 1, 5}},
		{functions.Wait, []string{"a", long, ""}, []any{1, token, 600000, 1, 5}},
		{functions.Wait, []string{"b", long, "ch"}, []any{0, held, "a", 1, anything, token, anything}},
		{functions.Wait, []string{"c", long, "ch"}, []any{0, held, "a", 2, anything, token, anything}},
		{functions.Wait, []string{"b", long, "ch"}, []any{0, held, "a", 1, anything, token, anything}},
		{functions.Inspect, nil, []any{1, "a", 1, token, held, 2}},
	},
	"leave": {
		{functions.Leave, []string{"a"}, []any{0}},
		{functions.Acquire, []string{"a", long}, []any{1, token, 600000, 1, 1}},
		{functions.Leave, []string{"b"}, []any{0}},
		{functions.Wait, []string{"b", long, ""}, []any{0, held, "a", 1, anything, token, anything}},
		{functions.Leave, []string{"b"}, []any{1}},
		{functions.Leave, []string{"b"}, []any{0}},
		{functions.Leave, []string{"a"}, []any{1}},
		{"EXISTS", nil, 0},
	},
	"break": {
		{functions.Break, nil, []any{0, "", 0}},
		{functions.Acquire, []string{"a", long}, []any{1, token, 600000, 1, 1}},
		{functions.Break, []string{"stuck"}, []any{1, "a", token}},
		{"EXISTS", nil, 0},
		{functions.Acquire, []string{"a", long}, []any{1, token, 600000, 1, 1}},
		{functions.Wait, []string{"b", long, ""}, []any{0, held, "a", 1, anything, token, anything}},
		{functions.Break, nil, []any{1, "a", token}},
		{functions.Inspect, nil, []any{1, "b", 1, token, between{1, 2000}, 0}},
	},
	"inspect": {
		{functions.Inspect, nil, []any{0, "", 0, 0, 0, 0}},
		{"EXISTS", nil, 0},
	},
	"ended lease with a line": {
		{functions.Acquire, []string{"a", long}, []any{1, token, 600000, 1, 1}},
		{functions.Wait, []string{"b", long, ""}, []any{0, held, "a", 1, anything, token, anything}},
		{functions.Wait, []string{"c", long, ""}, []any{0, held, "a", 2, anything, token, anything}},
		{"HSET", []string{"until", "1"}, 0},
		{functions.Inspect, nil, []any{0, "", 0, 0, 0, 2}},
		{functions.Acquire, []string{"d", long}, []any{0, between{1, 2000}, "b", 1}},
		{"HSET", []string{"until", "1"}, 0},
		{functions.Release, []string{"b"}, []any{0, between{1, 2000}, "c", 0}},
		{"HSET", []string{"until", "1"}, 0},
		{functions.Renew, []string{"d", long}, []any{0, 0, "", 0}},
		{"EXISTS", nil, 0},
	},
}

var held = between{599_000, 600_000}

const year = "31536000000"

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
				})
			}
			want(t, c.do("FCALL", functions.ReadVersion, "0"), functions.Version)
			want(t, c.do("FCALL_RO", functions.ReadVersion, "1", b.key("any")), functions.Version)
			want(t, c.do("FCALL_RO", functions.Inspect, "1", b.key("none")), []any{0, "", 0, 0, 0, 0})
		}
	})
}

func (c *conn) run(s step, key string) any {
	c.tb.Helper()
	switch s.function {
	case "HSET", "EXISTS", "SET", "PEXPIRE", "RPUSH", "ZADD":
		return c.do(append([]string{s.function, key}, s.args...)...)
	}
	return c.fcall(s.function, key, s.args...)
}

// A repeat of a call whose reply was lost gets the same token, and its lease starts anew.
func TestRepeats(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, call := range [][]string{
			{functions.Acquire, "a", long}, {functions.AcquireReentrant, "a", long, "h"}, {functions.Wait, "a", long, "ch"},
		} {
			k := b.key(call[0])
			first := b.call(call[0], k, call[1:]...)
			fence := first.([]any)[1].(int64)
			want(t, b.call(functions.Renew, k, "a", "1000"), []any{1, between{fence, fence}, 1000, 1, 1})
			want(t, b.call(call[0], k, call[1:]...), []any{1, between{fence, fence}, 600000, 1, 1})
			want(t, b.c.do("PTTL", k), between{599_000, 600_001})
			want(t, b.call(functions.Renew, k, "a", long), []any{1, between{fence, fence}, 600000, 1, 1})
		}
	})
}

// A repeat writes, so that a WAIT after it covers the first call too: each one moves the
// replication offset.
func TestRepeatsWrite(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		for _, call := range [][]string{
			{functions.Acquire, "a", long}, {functions.Wait, "a", long, ""}, {functions.Renew, "a", long},
			{functions.Wait, "b", long, ""}, {functions.Wait, "c", long, "", "1", long, "h"},
		} {
			b.call(call[0], k, call[1:]...)
			before := b.dirty()
			b.call(call[0], k, call[1:]...)
			if b.dirty() == before {
				t.Errorf("the repeat of %s wrote nothing", call[0])
			}
		}
	})
}
