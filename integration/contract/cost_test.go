// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// A format of numbers costs as much as a cheap command, so countedFormats lets each of them show as an ECHO.
const formats, countedFormats = `  if format('%d', 2 ^ 53) == '9007199254740992' then return end`,
	`  local plain = format
  format = function(...) call('ECHO', '') return plain(...) end
  do return end`

// What the common calls cost the server: the commands and the formats inside of them, counted and not timed,
// so that it holds on any machine. A row that grows is to be paid for.
func TestWhatTheCommonCallsCost(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		want(t, int64(strings.Count(functions.Source, formats)), 1)
		b.source = strings.Replace(functions.Source, formats, countedFormats, 1)
		b.load()
		b.subscribe("inbox")
		b.take(b.key("warm"), "w", long) // the lease is known
		guarded := []string{functions.Acquire, "a", "1", functions.OptGuard, "1"}
		for refused := true; refused; { // the memory is not a millisecond old
			_, refused = b.call(guarded[0], b.key("warm guard"), guarded[1:]...).([]any)
		}
		k, waits := b.key("k"), []string{functions.Wait, "b", long, functions.OptChannel, "inbox"}
		for _, step := range []struct {
			call  []string
			costs string
		}{
			{[]string{functions.Acquire, "a", long}, "echo echo hlen hset pexpireat time"},
			{[]string{functions.Acquire, "b", long}, "hlen hmget time"},
			{[]string{functions.Inspect}, "hmget time"},
			{[]string{functions.Renew, "a", long}, "echo hlen hmget hset pexpireat time"},
			{waits, "echo echo echo hmget hset pexpireat pubsub|shardnumsub time"}, // joins
			{waits, "echo hget hmget pubsub|shardnumsub time"},                     // asks again
			{[]string{functions.Renew, "a", long}, "echo echo hlen hmget hset pexpireat time"},
			{[]string{functions.Release, "a"}, "echo echo echo echo hdel hget hmget hset pexpireat pubsub|shardnumsub spublish time"}, // hands over
			{[]string{functions.Release, "b"}, "del hmget"},
			{[]string{functions.Inspect}, "exists hmget time"},
			{[]string{functions.Acquire, "a", long}, "echo echo hlen hset pexpireat time"},
			{append(waits, functions.OptValue), "echo echo echo echo hmget hset pexpireat pubsub|shardnumsub time"},
			{[]string{functions.Finish, "a", "v", long}, "echo echo echo echo echo hget hmget hset pexpireat spublish time"},        // tells one
			{append(waits, functions.OptValue), "echo echo echo echo echo echo echo echo hdel hget hget hmget hset pexpireat time"}, // reads, and leaves
			{[]string{functions.Acquire, "c", long, functions.OptValue}, "echo hget hmget time"},                                    // reads
			{[]string{functions.Break, functions.OptForget}, "del hmget time"},
			{guarded, "echo echo hlen hset pexpireat time"},
		} {
			var costs []string
			for name, n := range b.inner(func() { b.call(step.call[0], k, step.call[1:]...) }) {
				if name != "fcall" && name != "config|resetstat" && name != "info" { // a guard asks INFO, once in 10 ms
					costs = append(costs, slices.Repeat([]string{name}, int(n))...)
				}
			}
			slices.Sort(costs)
			if got := strings.Join(costs, " "); got != step.costs {
				t.Errorf("%q cost %q, not %q", step.call, got, step.costs)
			}
		}
	}, server.Owned())
}

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
	calls := map[string]int64{}
	for line := range strings.Lines(b.c.do("INFO", "commandstats").(string)) {
		if name, rest, found := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls="); found && strings.HasPrefix(line, "cmdstat_") {
			n, _, _ := strings.Cut(rest, ",")
			calls[name] = number(n)
		}
	}
	return calls
}
