package redis

import "testing"

func TestGlob(t *testing.T) {
	for _, c := range [][3]string{ // a pattern, what it matches, and what it does not
		{"lock:*", "lock:a\nb", "log:a"}, {"a?c", "abc", "ac"}, {"[a-c]x", "bx", "dx"}, {"[^a-c]x", "dx", "bx"},
		{`a\*`, "a*", "ab"}, {"a.b", "a.b", "axb"}, {"{x}(1)", "{x}(1)", "x1"}, {"^a$", "^a$", "a"},
		{"**b", "aab", "aa"}, {"[a", "", "a"},
	} {
		if c[1] != "" && !glob(c[0], c[1]) || c[2] != "" && glob(c[0], c[2]) {
			t.Errorf("%q: %q matches: %v, %q: %v", c[0], c[1], glob(c[0], c[1]), c[2], glob(c[0], c[2]))
		}
	}
}
