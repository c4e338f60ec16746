package redis

import "testing"

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"*", "", true}, {"lock:*", "lock:a\nb", true}, {"lock:*", "log:a", false}, {"a?c", "abc", true}, {"a?c", "ac", false},
		{"[a-c]x", "bx", true}, {"[^a-c]x", "bx", false}, {"[^a-c]x", "dx", true}, {`a\*`, "a*", true}, {`a\*`, "ab", false},
		{"a.b", "axb", false}, {"{x}(1)", "{x}(1)", true}, {"^a$", "a", false}, {"^a$", "^a$", true}, {"**b", "aab", true}, {"[a", "a", false},
	} {
		if got := glob(c.pattern, c.s); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.s, got)
		}
	}
}
