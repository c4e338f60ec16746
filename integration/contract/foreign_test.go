// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
)

const far = "9999999999999"

// lockCalls are right calls of all functions that take a lock's key.
var lockCalls = [][]string{
	{functions.Acquire, "a", long}, {functions.AcquireReentrant, "a", long, "h"}, {functions.Renew, "a", long}, {functions.Release, "a"},
	{functions.Finish, "a", "v", long}, {functions.Wait, "a", long}, {functions.Leave, "a"}, {functions.Inspect}, {functions.Break}, {functions.Holders},
}

// A plain SET of another service is a lock: nobody takes it, even by the same name, and only break
// removes it. Its value is told no longer than an owner may be.
func TestPlainStringIsALockOfSomeoneElse(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for ttl, pttl := range map[string]any{"": int64(-1), long: whole} {
			k := b.key("k" + ttl)
			set := []string{"SET", k, "a", "NX"}
			if ttl != "" {
				set = append(set, "PX", ttl)
			}
			want(t, b.c.do(set...), "OK")
			busy := []any{0, pttl, "a", 0, functions.WhyForeign}
			for _, call := range lockCalls[:5] {
				want(t, b.call(call[0], k, call[1:]...), busy)
			}
			want(t, b.call(functions.Wait, k, "a", long), append(slices.Clone(busy), serverMS, 0, 0))
			want(t, b.call(functions.Leave, k, "a"), busy)
			want(t, b.call(functions.Break, k, "OWNER", "b"), busy)
			want(t, b.call(functions.Inspect, k), []any{1, "a", 1, 0, pttl, 0, functions.WhyForeign})
			want(t, b.call(functions.Holders, k), []any{0, 1, "a", 0, pttl})
			want(t, b.call(functions.Holders, k, "2"), []any{0})
			want(t, b.c.do("GET", k), "a")
			want(t, b.c.do("PTTL", k), pttl)
			want(t, b.call(functions.Break, k), []any{1, "a", 0})
			b.expectFree(k)
		}
		k, value := b.key("long"), strings.Repeat("v", functions.MaxBytes)
		want(t, b.c.do("SET", k, value+strings.Repeat("w", 512<<10)), "OK")
		want(t, b.call(functions.Acquire, k, "a", long), []any{0, -1, value, 0, functions.WhyForeign})
		want(t, b.c.do("SET", k, ""), "OK")
		want(t, b.call(functions.Inspect, k), []any{1, "", 1, 0, -1, 0, functions.WhyForeign})
	})
}

// What is not a lock is refused by every function, and stays as it is.
func TestForeignKeysStayUntouched(t *testing.T) {
	makers := map[string][]string{
		"list": {"RPUSH", "x"}, "set": {"SADD", "x"}, "zset": {"ZADD", "1", "x"}, "stream": {"XADD", "*", "f", "v"}, "hash": {"HSET", "f", "v"},
		"hash with an owner":            {"HSET", "owner", "a"},
		"hash without a token":          {"HSET", "owner", "a", "until", far},
		"hash without an end":           {"HSET", "owner", "a", "fence", "1"},
		"hash with a broken state":      {"HSET", "owner", "a", "until", far, "fence", "1", "state", "1 2 3"},
		"hash with a state behind 2^52": {"HSET", "owner", "a", "until", far, "fence", "1", "state", doubles(1<<53, 1<<53+2, 1, 0, 1, 0)},
		"hash with a line backwards":    {"HSET", "owner", "a", "until", far, "fence", "1", "state", doubles(5, 4, 1, 0, 1, 0)},
		"hash with a token in hex":      {"HSET", "owner", "a", "until", far, "fence", "0x10"},
		"hash with other numbers":       {"HSET", "owner", "a", "until", "soon", "fence", "many"},
	}
	each(t, func(t *testing.T, b *bed) {
		for name, cmd := range makers {
			k := b.key(name)
			b.c.do(append([]string{cmd[0], k}, cmd[1:]...)...)
			before := b.c.do("DUMP", k)
			for _, call := range lockCalls {
				if got := b.call(call[0], k, call[1:]...); !matches(got, prefix("HFTYPE the key holds ")) {
					t.Errorf("%s on a %s: %s", call[0], name, show(got))
				}
			}
			want(t, b.c.do("DUMP", k), before)
			want(t, b.c.do("PTTL", k), -1)
		}
	})
}
