// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var (
	tags    = regexp.MustCompile(`(?s)<style>.*?</style>|<[^>]*>`)
	changes = regexp.MustCompile(`[#!]+|[0-9]+(\.[0-9]+)?(ms|s)?|\btrue\b|\bfalse\b`) // whether it is true, the demo's test says
)

// The tool shows what its pictures show, but for numbers.
func TestPicturesAreTrue(t *testing.T) {
	made, err := draw(t.Context())
	require.NoError(t, err)
	words := func(picture []byte) []string {
		lines := strings.Split(changes.ReplaceAllString(tags.ReplaceAllString(string(picture), ""), "N"), "\n")
		for i, line := range lines {
			if strings.HasSuffix(line, "…") { // where it is cut off depends on how long its numbers are
				lines[i] = string([]rune(line)[:min(60, utf8.RuneCountInString(line))])
			}
		}
		return lines
	}
	for name, picture := range made {
		kept, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Subset(t, words(picture), words(kept), "run make pictures")
	}
}
