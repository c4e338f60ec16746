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
	body    string
}

var (
	registered = regexp.MustCompile(`(?m)^register\('([^']*)', (\w+)`)
	labelled   = regexp.MustCompile(`^(KEYS|ARGV|Reply|Errors|Repeat) +(\S.*)$`)
	arityCall  = regexp.MustCompile(`\n  arity\(args, (\d+), (\d+), '([^']*)'\)`)
	argument   = regexp.MustCompile(`\bargs\[(\d+)\]`)
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

// checkArity compares the ARGV line with the function's arity call and with the arguments that it
// reads.
func (b block) checkArity() (findings []string) {
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
	m := arityCall.FindStringSubmatch(b.body)
	if m == nil {
		finding("has no arity call")
		return findings
	}
	if repeated { // a hundred times at most; they are read all at once
		most, _ = strconv.Atoi(m[2])
		if most != least+99*countNames(optional) {
			most = -1
		}
	}
	if m[1] != strconv.Itoa(least) || m[2] != strconv.Itoa(most) {
		finding("arity(%s, %s), but ARGV %q means %d to %d", m[1], m[2], b.lines["ARGV"], least, most)
	}
	if said := m[3]; said != names && (said != "none" || names != "") {
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
