// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"regexp"
	"strings"
)

// unquoted undoes what regexp.QuoteMeta does to what a pattern of Redis means by * ? [a-z] [^a] and \ before
// a character.
var unquoted = strings.NewReplacer(`\\\*`, `\*`, `\\\?`, `\?`, `\\\[`, `\[`,
	`\*`, `.*`, `\?`, `.`, `\[\^`, `[^`, `\[`, `[`, `\]`, `]`)

// glob matches as Redis' stringmatchlen does. A set without an end ends with the pattern.
func glob(pattern, s string) bool {
	for _, end := range []string{"$", "]$"} {
		if all, err := regexp.Compile(`(?s)^` + unquoted.Replace(regexp.QuoteMeta(pattern)) + end); err == nil {
			return all.MatchString(s)
		}
	}
	return false
}
