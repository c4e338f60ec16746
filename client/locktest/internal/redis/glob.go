package redis

import (
	"regexp"
	"strings"
)

// unquoted undoes what regexp.QuoteMeta does to what a pattern of Redis means by * ? [a-z] [^a] and \ before
// a character.
var unquoted = strings.NewReplacer(`\\\*`, `\*`, `\\\?`, `\?`, `\\\[`, `\[`,
	`\*`, `.*`, `\?`, `.`, `\[\^`, `[^`, `\[`, `[`, `\]`, `]`)

// glob matches as Redis' stringmatchlen does. A set without an end matches nothing.
func glob(pattern, s string) bool {
	all, err := regexp.Compile(`(?s)^` + unquoted.Replace(regexp.QuoteMeta(pattern)) + `$`)
	return err == nil && all.MatchString(s)
}
