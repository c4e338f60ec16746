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
