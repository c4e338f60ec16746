// SPDX-License-Identifier: Apache-2.0

package contract

import "strings"

// inner runs something and returns how many commands the server executed for it, by name, those
// inside of functions included. It says what a call costs without asking a clock.
func (b *bed) inner(run func()) map[string]int64 {
	b.tb.Helper()
	want(b.tb, b.c.do("CONFIG", "RESETSTAT"), "OK")
	run()
	return b.stats()
}

// stats returns the calls of each command since CONFIG RESETSTAT.
func (b *bed) stats() map[string]int64 {
	b.tb.Helper()
	return parseStats(b.c.do("INFO", "commandstats").(string))
}

func parseStats(text string) map[string]int64 {
	calls := map[string]int64{}
	for line := range strings.Lines(text) {
		if name, rest, found := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls="); found && strings.HasPrefix(line, "cmdstat_") {
			n, _, _ := strings.Cut(rest, ",")
			calls[name] = number(n)
		}
	}
	return calls
}
