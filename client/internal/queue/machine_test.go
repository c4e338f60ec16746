// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// These are what the walk does not go through: it delivers no abandoned answer, and does not count.

// drive is a Machine with fresh owners A, B, ...
func drive() *Machine {
	next := byte('A' - 1)
	return &Machine{Fresh: func(string) string { next++; return string([]byte{next}) }}
}

func comes() *Waiter { return &Waiter{Request: Request{Terms: plainTerms}} }

var errs = map[error]string{fcall.ErrBusy: "Busy", ErrTimeout: "Timeout", fcall.ErrUnreachable: "Unreachable",
	errRefused: "Refused", ErrClosed: "Closed"}

// says are the actions in words.
func says(actions []Action) string {
	words := [...]string{"", "acquire", "wait", "renew", "abandon", "undo", "give-back", "serve", "fail", "own"}
	var all []string
	for _, a := range actions {
		s := words[a.Op]
		if s += a.Owner; a.Token != 0 {
			s += fmt.Sprint(a.Token)
		}
		if a.Op == Fail {
			s += errs[a.Err]
		}
		if a.Again {
			s += "+again"
		}
		if a.Run {
			s += "+run"
		}
		all = append(all, s)
	}
	return strings.Join(all, " ")
}

func TestSteps(t *testing.T) {
	w, x := comes(), comes()
	guarded, longer, brief, try := comes(), comes(), comes(), comes()
	try.Try = true
	guarded.Terms, longer.Terms, brief.Until = guardedTerms, longTerms, 2*silence
	for _, c := range []struct {
		what  string
		steps []Event
		want  []string
	}{
		{"answers of abandoned calls are dropped, and their owner is left again", []Event{
			{Kind: Enter, Waiter: w}, {Kind: End, Waiter: w}, {Kind: Yes, No: 1, Token: 7, Top: 7}, {Kind: Enter, Waiter: x}, {Kind: Yes, No: 1, Token: 7, Top: 7}},
			[]string{"acquireA", "failTimeout abandon undoA+again", "", "acquireB", ""}},
		{"a release and the next wait are one step, with a fresh owner, and tokens for those behind", []Event{
			{Kind: Enter, Waiter: w}, {Kind: Yes, No: 1, Token: 7, Top: 7}, {Kind: Enter, Waiter: x}, {Kind: Enter, Waiter: guarded}, {Kind: Release, Owner: "A", Token: 7}},
			[]string{"acquireA", "serveA7", "", "", "give-backA waitB+run"}},
		{"nobody passes a lock on that others have waited for", []Event{
			{Kind: Enter, Waiter: w}, {Kind: Enter, Waiter: x}, {Kind: Yes, No: 1, Token: 7, Top: 8}, {Kind: Release, Owner: "A", Token: 7, Over: true}},
			[]string{"acquireA", "", "serveA7", "give-backA waitB+run"}},
		{"doubt goes with the lock, and to its loss", []Event{
			{Kind: Enter, Waiter: w}, {Kind: NoAnswer, No: 1, Unknown: true}, {Kind: Timer}, {Kind: Yes, No: 2, Token: 7, Top: 7}, {Kind: Release, Owner: "A", Token: 7, Over: true}},
			[]string{"acquireA", "", "waitA", "serveA7+again", "give-backA+again"}},
		{"the second lost reply is a verdict", []Event{
			{Kind: Enter, Waiter: w}, {Kind: NoAnswer, No: 1, Unknown: true}, {Kind: Timer}, {Kind: NoAnswer, No: 2, Unknown: true}},
			[]string{"acquireA", "", "waitA", "failUnreachable undoA+again"}},
		{"the end of a wait in an outage is not a timeout", []Event{
			{Kind: Enter, Waiter: w}, {Kind: End, Waiter: w, Now: silence}},
			[]string{"acquireA", "failUnreachable abandon undoA+again"}},
		{"nor is its deadline, whoever looks at it first", []Event{
			{Kind: Enter, Waiter: brief}, {Kind: NoAnswer, No: 1, Unknown: true}, {Kind: Timer, Now: 2 * silence}},
			[]string{"acquireA", "", "failUnreachable undoA+again"}},
		{"an owner that is used up is undone at once, and the next one asks after the pause", []Event{
			{Kind: Enter, Waiter: w}, {Kind: No, No: 1, Spent: true}, {Kind: Timer}, {Kind: No, No: 2, Spent: true}, {Kind: End, Waiter: w}},
			[]string{"acquireA", "undoA", "waitB", "undoB", "failTimeout"}},
		{"a refusal is for the one that was asked for", []Event{
			{Kind: Enter, Waiter: w}, {Kind: No, No: 1}, {Kind: Enter, Waiter: x}, {Kind: Denied, No: 2}},
			[]string{"acquireA", "waitA", "", "failRefused waitA+run"}},
		{"what a refused call may have left is undone", []Event{
			{Kind: Enter, Waiter: w}, {Kind: Denied, No: 1, Unknown: true}, {Kind: Enter, Waiter: x}, {Kind: Denied, No: 2}},
			[]string{"acquireA", "failRefused undoA+again", "acquireB", "failRefused"}},
		{"so is what a try may take that has been answered for it", []Event{
			{Kind: Enter, Waiter: try}, {Kind: No, No: 1, Unknown: true}, {Kind: Enter, Waiter: x}, {Kind: Yes, No: 2, Token: 7, Top: 7, Unknown: true}},
			[]string{"acquireA", "failBusy undoA+again", "acquireB", "serveB7+again"}},
		{"a grant that was kept for an answer is confirmed", []Event{
			{Kind: Enter, Waiter: w}, {Kind: No, No: 1}, {Kind: Grant, Owner: "A", Token: 7, Top: 7}, {Kind: No, No: 2, Token: 6}, {Kind: Yes, No: 3, Token: 7, Top: 7}},
			[]string{"acquireA", "waitA", "", "renewA7", "serveA7"}},
		{"what was handed over to another one's lease is confirmed", []Event{
			{Kind: Enter, Waiter: w}, {Kind: Enter, Waiter: longer}, {Kind: No, No: 1}, {Kind: No, No: 2}, {Kind: End, Waiter: w},
			{Kind: Grant, Owner: "A", Token: 7, Top: 7}, {Kind: Yes, No: 3, Token: 7, Top: 7}},
			[]string{"acquireA", "", "waitA+run", "", "failTimeout", "renewA7+run", "serveA7"}},
		{"the message of what was granted by an answer may come when that is given back", []Event{
			{Kind: Enter, Waiter: w}, {Kind: No, No: 1}, {Kind: Yes, No: 2, Token: 7, Top: 7}, {Kind: Grant, Owner: "A", Token: 7, Top: 7}, {Kind: Release, Owner: "A", Token: 7},
			{Kind: Grant, Owner: "A", Token: 7, Top: 7}, {Kind: Grant, Owner: "A", Token: 8, Top: 8}},
			[]string{"acquireA", "waitA", "serveA7", "", "give-backA", "", "undoA8"}},
		{"who is told to look while a question is under way asks once more", []Event{
			{Kind: Enter, Waiter: w}, {Kind: No, No: 1}, {Kind: Timer}, {Kind: No, No: 2}, {Kind: No, No: 3}, {Kind: Timer}, {Kind: No, No: 4}},
			[]string{"acquireA", "waitA", "", "waitA", "", "waitA", ""}},
		{"a silence begins with a question, however long ago the last answer was", []Event{
			{Kind: Enter, Waiter: w}, {Kind: No, No: 1}, {Kind: No, No: 2}, {Kind: Timer, Now: 5 * plainTerms.Length}, {Kind: NoAnswer, No: 3, Unknown: true, Now: 6 * plainTerms.Length},
			{Kind: Timer, Now: 6 * plainTerms.Length}, {Kind: NoAnswer, No: 4, Unknown: true, Now: 7 * plainTerms.Length}},
			[]string{"acquireA", "waitA", "", "waitA", "", "waitA", "failUnreachable undoA+again"}},
		{"and ends with a grant", []Event{
			{Kind: Enter, Waiter: w}, {Kind: Enter, Waiter: x}, {Kind: No, No: 1}, {Kind: No, No: 2}, {Kind: Timer, Now: 5 * plainTerms.Length}, {Kind: NoAnswer, No: 3, Now: 5 * plainTerms.Length},
			{Kind: Grant, Owner: "A", Token: 8, Top: 8, Now: 5 * plainTerms.Length}, {Kind: Release, Owner: "A", Token: 8, Now: 9 * plainTerms.Length}, {Kind: NoAnswer, No: 4, Now: 9 * plainTerms.Length}},
			[]string{"acquireA", "", "waitA+run", "", "waitA+run", "", "serveA8", "give-backA waitB+run", ""}},
		{"what is not confirmed is confirmed again, and is a verdict after a lease", []Event{
			{Kind: Enter, Waiter: w}, {Kind: No, No: 1}, {Kind: Yes, No: 2, Token: 7, Top: 7, Confirm: true}, {Kind: NoAnswer, No: 3, Unknown: true}, {Kind: Timer},
			{Kind: NoAnswer, No: 4, Unknown: true, Now: 2 * plainTerms.Length}},
			[]string{"acquireA", "waitA", "renewA7", "", "renewA7", "failUnreachable undoA+again"}},
	} {
		m := drive()
		*w, *x = *comes(), *comes()
		for i, e := range c.steps {
			e.Now++
			if got := says(m.Step(e)); got != c.want[i] {
				t.Errorf("%s: step %d: %q, want %q", c.what, i, got, c.want[i])
			}
		}
	}
}

// TestNoAllocation: what every lock costs.
func TestNoAllocation(t *testing.T) {
	m, w := &Machine{Fresh: func(string) string { return "A" }}, comes()
	if n := testing.AllocsPerRun(100, func() {
		m.buf, m.out = [1]Action{}, nil
		m.Step(Event{Kind: Enter, Waiter: w})
		m.Step(Event{Kind: Yes, No: m.no, Token: 7, Top: 7})
		m.Step(Event{Kind: Release, Owner: "A", Token: 7})
	}); n > 0 || m.State() != Absent {
		t.Errorf("%v allocations, state %d", n, m.State())
	}
	m.Step(Event{Kind: Enter, Waiter: w})
	m.Step(Event{Kind: Yes, No: m.no, Token: 1, Top: 1 << 40})
	token := int64(1)
	if n := testing.AllocsPerRun(100, func() {
		m.Step(Event{Kind: Enter, Waiter: w})
		m.Step(Event{Kind: Release, Owner: "A", Token: token})
		token++
	}); n > 0 || m.State() != Held {
		t.Errorf("%v allocations of a pass, state %d", n, m.State())
	}
}
