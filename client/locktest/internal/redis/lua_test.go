package redis_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// tonumber takes digits without end, as C's does.
func TestNumbersInLua(t *testing.T) {
	n := redis.New(redis.Options{}).Node("10.0.0.1:6379")
	for text, want := range map[string]string{
		"18446744073709551616": "1.8446744073709552e+19", "9007199254740993": "9007199254740992", "007": "7",
		"12x": "nil", "": "nil", "1e3": "1000", " 5 ": "5", "0x10": "16", "-3": "-3", "inf": "+Inf",
	} {
		got := n.Do("EVAL", "local n = tonumber(ARGV[1]) return n and string.format('%.17g', n) or 'nil'", "0", text)
		require.Equal(t, want, got, text)
	}
}

// What the package matches itself it matches as gopher-lua does, which has the pattern behind an empty capture.
func TestPatternsMatchAsInLua(t *testing.T) {
	n := redis.New(redis.Options{}).Node("10.0.0.1:6379")
	for _, pattern := range []string{"^%C*$", "^%C+$", "^%d+$", "^%w+$", "^[1-9]%d*$"} {
		for _, text := range []string{"", "0", "10", "1x", "xY9", "a b", "12\n", "\x00", "\x7f", "héllo", "\xff1"} {
			got := n.Do("EVAL", `local p, s = ARGV[1], ARGV[2]
				local from, to = s:find(p)
				local _, _, own = s:find((p:gsub('^^', '^()')))
				return { tostring(from) == tostring(own), not from or to == #s }`, "0", pattern, text)
			require.Equal(t, []any{int64(1), int64(1)}, got, "%q in %q", pattern, text)
		}
	}
	require.Equal(t, []any{"-7", "1152921504606847488", "0"}, n.Do("EVAL",
		"local n = {} for i, x in ipairs({ -7, 2^60 + 512, 0 }) do n[i] = ('%d'):format(x) end return n", "0"))
}
