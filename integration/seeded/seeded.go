// SPDX-License-Identifier: Apache-2.0

// Package seeded puts defects into sources, for tests that must find them.
package seeded

import (
	"strings"
	"testing"
)

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
