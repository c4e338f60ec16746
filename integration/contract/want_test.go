// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
)

// between is any integer from lo to hi.
type between struct{ lo, hi int64 }

// prefix is any text, or error reply, that starts so.
type prefix string

type wildcard struct{}

var (
	anything wildcard
	// microseconds since 1970, from 2017 to the limit of Lua's integers
	token = between{1_500_000_000_000_000, 1 << 53}
	// milliseconds that are left of a lease or the like; the library counts the one that runs too
	pttl     = between{0, functions.MaxTTL + 1}
	left     = between{1, 600_001}
	whole    = between{590_000, 600_001}
	serverMS = between{1, 1 << 50}
	hfjoin   = prefix("HFJOIN ")
)

// want fails the test unless a reply is what was expected: integers, strings, nil, failure,
// between, prefix, anything, and []any of those.
func want(tb testing.TB, got, expected any) {
	tb.Helper()
	if !matches(got, expected) {
		tb.Fatalf("got  %s\nwant %s", show(got), show(expected))
	}
}

func matches(got, expected any) bool {
	switch e := expected.(type) {
	case wildcard:
		return true
	case int:
		return got == int64(e)
	case between:
		n, ok := got.(int64)
		return ok && e.lo <= n && n <= e.hi
	case prefix:
		switch g := got.(type) {
		case failure:
			return strings.HasPrefix(string(g), string(e))
		case string:
			return strings.HasPrefix(g, string(e))
		}
		return false
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(e) {
			return false
		}
		for i := range e {
			if !matches(g[i], e[i]) {
				return false
			}
		}
		return true
	}
	return got == expected
}

func show(v any) string {
	text := fmt.Sprintf("%#v", v)
	return text[:min(len(text), 600)]
}

func itoa(n int64) string { return fmt.Sprint(n) }
