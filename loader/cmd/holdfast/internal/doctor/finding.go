// SPDX-License-Identifier: Apache-2.0

// Package doctor looks for what makes locks unsafe or slow on a deployment. It writes nothing.
//
// kinds.go is the table of what can be found, checks.go the table of the looks, and there is a file
// for each subject.
package doctor

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	Danger Severity = "danger" // two holders, lost locks, or nobody gets one
	Slow   Severity = "slow"   // locks are safe, and come late
	Note   Severity = "note"   // to know, not to mend
)

func (s Severity) rank() int { return slices.Index([]Severity{Danger, Slow, Note}, s) }

// Finding is something that was found at a node.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Node     string   `json:"node"`               // its address; "" for the deployment
	What     string   `json:"what"`               // what was found, with its values
	Why      string   `json:"why"`                // what it does to locks
	Mend     string   `json:"mend"`               // the command, or what to do
	Accepted bool     `json:"accepted,omitempty"` // by Options.Accept: it is a note
}

// Report is what an examination found.
type Report struct {
	Nodes    []string  // addresses of those that were looked at
	Checked  []string  // what was looked at, in words
	Findings []Finding // dangers first, then by code; what is the same at several nodes is together
	Errors   []error   // of what could not be reached at all
}

// Ill reports whether there is more than notes.
func (r Report) Ill() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity != Note })
}

func (r *Report) sort() {
	slices.SortFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity.rank(), b.Severity.rank()), cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.What, b.What), cmp.Compare(a.Node, b.Node))
	})
	slices.Sort(r.Nodes)
}

// accept makes notes of what the user knows and lives with.
func (r *Report) accept(codes []string) {
	for i := range r.Findings {
		if f := &r.Findings[i]; slices.Contains(codes, f.Code) {
			f.Accepted, f.Severity = true, Note
		}
	}
}

// find makes a finding of the table's kind.
func find(code, node, mend, format string, args ...any) Finding {
	k := kindOf(code)
	what := fmt.Sprintf(format, args...)
	return Finding{Code: code, Severity: k.Severity, Node: node, What: what, Why: k.Why, Mend: mend}
}
