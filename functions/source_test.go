// SPDX-License-Identifier: Apache-2.0

package functions_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// labels are the lines of a comment block, in the order they must have.
var labels = []string{"KEYS", "ARGV", "Reply", "Errors", "Repeat"}

// block is the comment above a function, and what the function's first lines say.
type block struct {
	name    string
	purpose string
	lines   map[string]string
	form    []string // how a function with words is called: the whole, its name, its fixed arguments, its usage
	body    string
}

var (
	registered = regexp.MustCompile(`(?m)^register\('([^']*)', (\w+)`)
	labelled   = regexp.MustCompile(`^(KEYS|ARGV|Reply|Errors|Repeat) +(\S.*)$`)
	formed     = regexp.MustCompile(`\nlocal (\w+) = form\((\d+),\s+'([^']*)'\)$`)
	arityCall  = regexp.MustCompile(`\n  arity\(args, (\d+), (\d+), '([^']*)'\)`)
	expected   = regexp.MustCompile(`\n  expect\(#args [^\n]*, '([^']*)'\)`)
	argument   = regexp.MustCompile(`\bargs\[(\d+)\]`)
	word       = regexp.MustCompile(`[A-Z]+`)
)

// parseBlock finds a function in the source and reads the comment above it. The findings say what
// is wrong with it.
func parseBlock(source, name string) (b block, findings []string) {
	finding := func(format string, args ...any) { findings = append(findings, name+": "+fmt.Sprintf(format, args...)) }
	b = block{name: name, lines: map[string]string{}}
	before, after, found := strings.Cut(source, "\nlocal function "+name+"(")
	if !found {
		finding("is registered but not defined")
		return b, findings
	}
	b.body, _, _ = strings.Cut(after, "\nend")
	if m := formed.FindStringSubmatch(before); m != nil {
		b.form, before = m, strings.TrimSuffix(before, m[0])
	}
	all := strings.Split(before, "\n")
	first := len(all)
	for first > 0 && strings.HasPrefix(all[first-1], "-- ") {
		first--
	}
	comment := all[first:]
	if len(comment) == 0 {
		finding("has no comment block")
		return b, findings
	}
	if comment[0] != "-- "+name {
		finding("the comment block begins with %q", comment[0])
	}
	var order []string
	for _, line := range comment[1:] {
		text := strings.TrimPrefix(line, "-- ")
		switch m := labelled.FindStringSubmatch(text); {
		case m != nil:
			order = append(order, m[1])
			b.lines[m[1]] = m[2]
		case len(order) > 0:
			finding("a line behind %s without a label: %q", order[len(order)-1], text)
		default:
			b.purpose = strings.TrimSpace(b.purpose + " " + text)
		}
	}
	if !slices.Equal(order, labels) {
		finding("the comment block has the lines %v, not %v", order, labels)
	}
	if b.purpose == "" {
		finding("says no purpose")
	}
	return b, findings
}

// checkArguments compares the ARGV line with what the function says if the arguments are wrong: the
// form of a function with words, or the arity of one that has none.
func (b block) checkArguments(words []string) (findings []string) {
	finding := func(format string, args ...any) {
		findings = append(findings, b.name+": "+fmt.Sprintf(format, args...))
	}
	names := b.lines["ARGV"]
	if names == "-" {
		names = "none"
	}
	switch m, n := arityCall.FindStringSubmatch(b.body), expected.FindStringSubmatch(b.body); {
	case b.form != nil:
		fixed, _, _ := strings.Cut(names, "[")
		if least := strconv.Itoa(len(strings.Fields(fixed))); b.form[2] != least && names != "none" {
			finding("form says %s fixed arguments, but ARGV is %q", b.form[2], names)
		}
		if b.form[3] != names {
			finding("form says %q, but ARGV is %q", b.form[3], names)
		}
		if !strings.Contains(b.body, "options(args, "+b.form[1]+")") {
			finding("reads no options by %s", b.form[1])
		}
		if !slices.Contains(strings.Fields(b.lines["Errors"]), "HFOPTION") {
			finding("can fail with HFOPTION, but Errors does not say so")
		}
		for _, w := range word.FindAllString(names, -1) {
			if !slices.Contains(words, w) {
				finding("Go does not know the word %s", w)
			}
		}
	case m != nil:
		findings = append(findings, b.checkArity(m[1], m[2], m[3])...)
	case n != nil:
		if n[1] != names {
			finding("the error says %q, but ARGV is %q", n[1], names)
		}
	default:
		finding("does not look at the number of its arguments")
	}
	return findings
}

// checkArity compares the ARGV line with a call of arity, and with the arguments that are read.
func (b block) checkArity(low, high, said string) (findings []string) {
	finding := func(format string, args ...any) {
		findings = append(findings, b.name+": "+fmt.Sprintf(format, args...))
	}
	names := b.lines["ARGV"]
	if names == "-" {
		names = ""
	}
	required, optional, _ := strings.Cut(names, "[")
	optional, repeated := strings.CutSuffix(optional, " ...]")
	least := countNames(required)
	most := least + countNames(optional)
	if repeated { // a hundred times at most; they are read all at once
		most, _ = strconv.Atoi(high)
		if most != least+99*countNames(optional) {
			most = -1
		}
	}
	if low != strconv.Itoa(least) || high != strconv.Itoa(most) {
		finding("arity(%s, %s), but ARGV %q means %d to %d", low, high, b.lines["ARGV"], least, most)
	}
	if said != names && (said != "none" || names != "") {
		finding("the arity error says %q, but ARGV is %q", said, names)
	}
	read := map[string]bool{}
	for _, a := range argument.FindAllStringSubmatch(b.body, -1) {
		read[a[1]] = true
	}
	for i := 1; i <= most && !repeated; i++ {
		if !read[strconv.Itoa(i)] {
			finding("never reads argument %d of %q", i, names)
		}
	}
	if len(read) > most {
		finding("reads %d arguments, but ARGV is %q", len(read), names)
	}
	return findings
}

func countNames(list string) int {
	return len(strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(" ,[]", r) }))
}

// checkErrors compares the Errors line with the codes in the source.
func (b block) checkErrors(codes []string) (findings []string) {
	said := strings.Fields(b.lines["Errors"])
	if len(said) == 0 {
		findings = append(findings, b.name+": names no errors")
	}
	for _, code := range said {
		if !slices.Contains(codes, code) {
			findings = append(findings, fmt.Sprintf("%s: Errors names %s, which is no code of the library", b.name, code))
		}
	}
	return findings
}
