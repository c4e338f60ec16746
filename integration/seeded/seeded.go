// SPDX-License-Identifier: Apache-2.0

// Package seeded puts defects into sources, for tests that must find them, and reads what the environment
// says of a random test: its seed, how long it takes.
package seeded

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// Setting is what a variable of the environment says, or what is usual.
func Setting[T any](tb testing.TB, variable string, usual T, parse func(string) (T, error)) T {
	tb.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	value, err := parse(text)
	if err != nil {
		tb.Fatalf("%s: %v", variable, err)
	}
	return value
}

// Number parses a seed, or a count.
func Number(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }

// Text is a source with changes: old, new, old, new. Each old text must be there once, or the defect must be
// put in in another way.
func Text(tb testing.TB, source string, changes ...string) string {
	tb.Helper()
	for i := 0; i < len(changes); i += 2 {
		if n := strings.Count(source, changes[i]); n != 1 {
			tb.Fatalf("the text to replace is there %d times, not once: %q", n, changes[i])
		}
		source = strings.Replace(source, changes[i], changes[i+1], 1)
	}
	return source
}
