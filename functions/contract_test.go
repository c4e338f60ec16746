// SPDX-License-Identifier: Apache-2.0

package functions_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
)

// constants are the numbers and texts that Go and Lua must agree on, by their name in the source.
var constants = map[string]string{
	"VERSION":        "'" + functions.Version + "'",
	"PROVISIONAL_MS": fmt.Sprint(functions.ProvisionalTTL),
	"POLL_MS":        fmt.Sprint(functions.PollTTL),
	"RECORD_MIN_MS":  fmt.Sprint(functions.MinRecord),
	"RECORD_MAX_MS":  fmt.Sprint(functions.MaxRecord),
	"MAX_TTL_MS":     fmt.Sprint(int64(functions.MaxTTL)),
	"MAX_BYTES":      fmt.Sprint(functions.MaxBytes),
	"MAX_HOLD_BYTES": fmt.Sprint(functions.MaxHoldBytes),
	"MAX_HOLDS":      fmt.Sprint(functions.MaxHolds),
	"MAX_TOKENS":     fmt.Sprint(functions.MaxTokens),
	"MAX_WAITERS":    fmt.Sprint(functions.MaxWaiters),
	"MAX_HOLDERS":    fmt.Sprint(functions.MaxHolders),
}

var codes = []string{functions.CodeArg, functions.CodeFull, functions.CodeJoin, functions.CodeOption, functions.CodeServer, functions.CodeType}

// words are the options of the functions, and whys the words of a refusal.
var (
	words = []string{functions.OptLimit, functions.OptShared, functions.OptTokens, functions.OptGuard, functions.OptMinHold, functions.OptMaxWait, functions.OptChannel,
		functions.OptHold, functions.OptFence, functions.OptRaise, functions.OptLast, functions.OptOwner, functions.OptReason,
		functions.OptAll, functions.OptForget, functions.OptValue}
	whys = []string{functions.WhyHeld, functions.WhyFree, functions.WhyKept, functions.WhyDone, functions.WhySettling,
		functions.WhyServing, functions.WhyForeign, functions.WhyBroken, functions.WhyLimited, functions.WhyShared}
)

// contract is what Go says of a library.
type contract struct {
	library   string
	names     []string
	constants map[string]string
	codes     []string
	words     []string // of the functions' options
	whys      []string
}

var (
	locks  = contract{functions.Library, functions.Names(), constants, codes, words, whys}
	fenced = contract{functions.FencedLibrary, functions.FencedNames(),
		map[string]string{"VERSION": "'" + functions.FencedVersion + "'", "MAX_TTL_MS": fmt.Sprint(int64(functions.MaxTTL))},
		[]string{functions.CodeArg, functions.CodeServer, functions.CodeType}, nil, nil}
)

// check returns everything that is wrong between the locks' source, its README and the Go package.
func check(source, readme string) []string { return locks.check(source, readme) }

func (c contract) check(source, readme string) (findings []string) {
	finding := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	var names []string
	var blocks []block
	for _, m := range registered.FindAllStringSubmatch(source, -1) {
		names = append(names, m[1])
		if m[1] != m[2] {
			finding("%s is registered with the function %s", m[1], m[2])
		}
		b, wrong := parseBlock(source, m[1])
		findings = append(findings, wrong...)
		if len(wrong) == 0 {
			findings = append(findings, b.checkArguments(c.words)...)
			findings = append(findings, b.checkErrors(c.codes)...)
		}
		blocks = append(blocks, b)
	}
	if n := strings.Count(source, "\nregister('"); n != len(names) || n == 0 {
		finding("%d functions are registered, %d understood", n, len(names))
	}
	if !slices.Equal(names, c.names) {
		finding("functions.Names() is %v, but the source registers %v", c.names, names)
	}
	findings = append(findings, checkTable(readme, blocks)...)
	findings = append(findings, c.checkWords(source, readme)...)
	return append(findings, c.checkConstants(source, readme)...)
}

func (c contract) checkConstants(source, readme string) (findings []string) {
	finding := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	if !strings.HasPrefix(source, "#!lua name="+c.library+"\n") {
		finding("the source is not the library %q", c.library)
	}
	for name, value := range c.constants {
		m := regexp.MustCompile(`(?m)^local ` + name + ` = (\S+)`).FindStringSubmatch(source)
		if m == nil || m[1] != value {
			finding("the source has %q for %s, Go has %s", m, name, value)
		}
	}
	found := map[string]bool{}
	for _, code := range regexp.MustCompile(`'(HF[A-Z]+) `).FindAllStringSubmatch(source, -1) {
		found[code[1]] = true
	}
	for _, code := range c.codes {
		if !found[code] {
			finding("the source never fails with %s", code)
		}
		delete(found, code)
		if !strings.Contains(readme, "\n| `"+code+"` | ") {
			finding("README's table of errors has no %s", code)
		}
	}
	for code := range found {
		finding("Go does not know the code %s of the source", code)
	}
	return findings
}

// checkWords compares Go's words with those that the source takes or says, and with README's tables.
func (c contract) checkWords(source, readme string) (findings []string) {
	finding := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	_, table, _ := strings.Cut(source, "\nlocal OPTIONS = {\n")
	table, _, _ = strings.Cut(table, "\n}\n")
	var known []string
	for _, m := range regexp.MustCompile(`\b([A-Z]+) = `).FindAllStringSubmatch(table, -1) {
		known = append(known, m[1])
		if !strings.Contains(source, "ask."+m[1]) {
			finding("the source never asks for the word %s", m[1])
		}
	}
	if got, want := slices.Sorted(slices.Values(known)), slices.Sorted(slices.Values(c.words)); !slices.Equal(got, want) {
		finding("the source knows the words %v, Go has %v", got, want)
	}
	for _, word := range c.words {
		if !strings.Contains(readme, "\n| `"+word+" ") && !strings.Contains(readme, "\n| `"+word+"` | ") {
			finding("README's table of words has no %s", word)
		}
	}
	for _, why := range c.whys {
		if !strings.Contains(source, "'"+why+"'") && why != functions.WhyDone { // for a later version
			finding("the source never says why by %q", why)
		}
		if !strings.Contains(readme, "\n| `"+why+"` | ") && !strings.Contains(readme, "\n| `"+why+" ") {
			finding("README's table of reasons has no %s", why)
		}
	}
	return findings
}

func readmeText(t *testing.T) string { return page(t, "README.md") }

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSourceReadmeAndGoAgree(t *testing.T) {
	for _, f := range check(functions.Source, readmeText(t)) {
		t.Error(f)
	}
}

func TestFencedSourcePageAndGoAgree(t *testing.T) {
	for _, f := range fenced.check(functions.FencedSource, page(t, "FENCED.md")) {
		t.Error(f)
	}
}

// mutation is a change that the checker must find, by a finding that contains a text.
type mutation struct{ name, old, new, finding string }

var sourceMutations = []mutation{
	{"no comment block", "-- Repeat  safe: the second reply is a refusal\n", "-- Repeat  safe: the second reply is a refusal\n\n", "holdfast_leave: has no comment block"},
	{"another function's block", "-- holdfast_leave\n", "-- holdfast_leaf\n", `holdfast_leave: the comment block begins with "-- holdfast_leaf"`},
	{"line missing", "-- ARGV    owner ttl_ms [LIMIT n | SHARED] [TOKENS n] [GUARD ms] [MINHOLD ms] [VALUE]\n", "", "holdfast_acquire: the comment block has the lines [KEYS Reply"},
	{"order", "-- KEYS    -\n-- ARGV    -\n", "-- ARGV    -\n-- KEYS    -\n", "holdfast_version: the comment block has the lines [ARGV KEYS"},
	{"empty line", "-- Reply   version\n", "-- Reply\n", "holdfast_version: "},
	{"no purpose", "-- The version of the loaded library.\n", "", "holdfast_version: says no purpose"},
	{"purpose changed", "-- The version of the loaded library.\n", "-- The version of the library.\n", "list of purposes differs for holdfast_version"},
	{"fixed arguments", "LEAVE = form(1,", "LEAVE = form(2,", "holdfast_leave: form says 2 fixed arguments"},
	{"usage", "form(1, 'owner [HOLD id] [FENCE token]')", "form(1, 'owner [HOLD id]')", `holdfast_leave: form says "owner [HOLD id]"`},
	{"form unused", "options(args, BREAK)", "options(args, LEAVE)", "holdfast_break: reads no options by BREAK"},
	{"no form", "\nlocal BREAK = form(0, '[OWNER owner] [REASON text | FORGET]')", "", "holdfast_break: does not look at the number"},
	{"error of options", "-- Errors  HFARG HFOPTION HFTYPE HFSERVER\n-- Repeat  safe: no writes", "-- Errors  HFARG HFTYPE HFSERVER\n-- Repeat  safe: no writes", "holdfast_inspect: can fail with HFOPTION"},
	{"another word", "  CHANNEL = channel_arg, ALL", "  TUNNEL = channel_arg, ALL", "the source knows the words [ALL FENCE"},
	{"word unread", "fence, hold, raise = ask.FENCE, ask.HOLD, ask.RAISE", "fence, hold, raise = ask.FENCE, ask.HOLD, nil", "never asks for the word RAISE"},
	{"why unsaid", "0, 'serving'", "0, 'swerving'", `never says why by "serving"`},
	{"usage of a function without words", "expect(#args == 0, 'none')", "expect(#args == 0, 'nothing')", `holdfast_version: the error says "nothing"`},
	{"reply changed", "-- Reply   1, owner, fence |", "-- Reply   owner, fence |", "README's table differs for holdfast_break"},
	{"unknown error", "-- Errors  HFARG\n", "-- Errors  HFARG HFOOPS\n", "holdfast_version: Errors names HFOOPS"},
	{"new function", "register('holdfast_break',", "register('holdfast_smash', holdfast_smash)\nregister('holdfast_break',", "holdfast_smash: is registered but not defined"},
	{"function gone", "register('holdfast_leave', holdfast_leave, 1, 'allow-oom')\n", "", "functions.Names() is"},
	{"wrong body", "register('holdfast_leave', holdfast_leave,", "register('holdfast_leave', holdfast_break,", "holdfast_leave is registered with the function holdfast_break"},
	{"odd registration", "\nregister('holdfast_leave', ", "\nregister('holdfast_leave' , ", "functions are registered, "},
	{"version", "VERSION = '2.0.0'", "VERSION = '2.0.1'", "for VERSION"},
	{"bound", "MAX_WAITERS = 5000", "MAX_WAITERS = 1000", "for MAX_WAITERS"},
	{"library", "name=holdfast\n", "name=handfast\n", `not the library "holdfast"`},
	{"new code", "'HFARG key must not be empty'", "'HFKEY key must not be empty'", "the code HFKEY"},
	{"code gone", "redis.error_reply('HFSERVER ' ", "redis.error_reply('ERR ' ", "never fails with HFSERVER"},
}

var readmeMutations = []mutation{
	{"no table", "| Function | KEYS |", "| Functions | KEYS |", "no table of functions"},
	{"row gone", "| `holdfast_leave` | ", "holdfast_leave | ", "no row for holdfast_leave"},
	{"row twice", "| `holdfast_leave` | ", "| `holdfast_version` | - | - |\n| `holdfast_leave` | ", "two rows for holdfast_version"},
	{"strange row", "| `holdfast_leave` | ", "| `holdfast_smash` | - | - |\n| `holdfast_leave` | ", "holdfast_smash, which is not registered"},
	{"ARGV", "`owner [HOLD id] [FENCE token]`", "`owner [HOLD id]`", "differs for holdfast_leave"},
	{"Reply", "`held, owner, holds, fence, pttl_ms, waiters, why` | `HFARG", "`held, owner` | `HFARG", "differs for holdfast_inspect"},
	{"Errors", "`version` | `HFARG` |", "`version` | `HFTYPE` |", "differs for holdfast_version"},
	{"Repeat", "| safe with OWNER;", "| safe;", "differs for holdfast_break"},
	{"code", "| `HFFULL` | ", "| HFFULL | ", "no HFFULL"},
	{"purpose", "- `holdfast_leave`: Gives up", "- `holdfast_leave`: gives up", "purposes differs for holdfast_leave"},
	{"word", "\n| `GUARD ", "\n| `WARD ", "table of words has no GUARD"},
	{"why", "\n| `kept` | ", "\n| kept | ", "table of reasons has no kept"},
}

// The checker can fail: every kind of mistake is found in a broken copy.
func TestCheckerFindsMistakes(t *testing.T) {
	source, readme := functions.Source, readmeText(t)
	repeated := mutation{"repeated", "arity(args, 3, 201,", "arity(args, 3, 200,", "holdfast_hset_if: arity(3, 200)"}
	run := func(m mutation, original string, broken func(string) []string) {
		t.Run(m.name, func(t *testing.T) {
			if !strings.Contains(original, m.old) {
				t.Fatalf("the mutation no longer fits: %q is not there", m.old)
			}
			findings := broken(strings.Replace(original, m.old, m.new, 1))
			if !slices.ContainsFunc(findings, func(f string) bool { return strings.Contains(f, m.finding) }) {
				t.Errorf("no finding %q in %q", m.finding, findings)
			}
		})
	}
	for _, m := range sourceMutations {
		run(m, source, func(s string) []string { return check(s, readme) })
	}
	run(repeated, functions.FencedSource, func(s string) []string { return fenced.check(s, page(t, "FENCED.md")) })
	for _, m := range readmeMutations {
		run(m, readme, func(s string) []string { return check(source, s) })
	}
}
