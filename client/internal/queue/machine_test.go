package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// These are what the walk does not go through: it delivers no abandoned answer, and does not count.

// drive is a Machine with fresh owners A, B, ...
func drive() *Machine {
	next := byte('A' - 1)
	return &Machine{Fresh: func(string) string { next++; return string([]byte{next}) }}
}

func comes() *Waiter { return &Waiter{Terms: plainTerms} }

// says are the actions in words.
func says(actions []Action) string {
	words := [...]string{"", "acquire", "wait", "renew", "abandon", "undo", "give-back", "serve", "fail", "own", "start", "stop"}
	var all []string
	for _, a := range actions {
		s := words[a.Op]
		if s += a.Owner; a.Token != 0 {
			s += fmt.Sprint(a.Token)
		}
		if a.Op == Fail {
			s += [...]string{"Busy", "Timeout", "Unreachable", "Refused", "Closed"}[a.Err]
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
	guarded, brief := &Waiter{Terms: guardedTerms}, &Waiter{Terms: plainTerms, Until: 2 * silence}
	for _, c := range []struct {
		what  string
		asks  bool
		steps []Event
		want  []string
	}{
		{"answers of abandoned calls are dropped, and their owner is left again", false, []Event{
			{Kind: Enter, Waiter: w}, {Kind: End, Waiter: w}, {Kind: Yes, No: 1, Token: 7, Top: 7}, {Kind: Enter, Waiter: x}, {Kind: Yes, No: 1, Token: 7, Top: 7}},
			[]string{"acquireA", "failTimeout abandon undoA+again", "", "acquireB", ""}},
		{"a release and the next wait are one step, with a fresh owner, and tokens for those behind", false, []Event{
			{Kind: Enter, Waiter: w}, {Kind: Yes, No: 1, Token: 7, Top: 7}, {Kind: Enter, Waiter: x}, {Kind: Enter, Waiter: guarded}, {Kind: Release, Owner: "A", Token: 7}},
			[]string{"acquireA", "serveA7", "", "", "give-backA7 waitB+run"}},
		{"who declines the first token has used none, who declines the next one has used the first", false, []Event{
			{Kind: Enter, Waiter: w}, {Kind: Enter, Waiter: x}, {Kind: Yes, No: 1, Token: 7, Top: 8}, {Kind: Release, Owner: "A", Token: 7}, {Kind: Decline, Owner: "A", Token: 8}},
			[]string{"acquireA", "", "serveA7", "serveA8", "give-backA7"}},
		{"nobody passes a lock on that others have waited for", false, []Event{
			{Kind: Enter, Waiter: w}, {Kind: Enter, Waiter: x}, {Kind: Yes, No: 1, Token: 7, Top: 8}, {Kind: Decline, Owner: "A", Token: 7, Over: true}},
			[]string{"acquireA", "", "serveA7", "give-backA waitB+run"}},
		{"doubt goes with the lock, and to its loss", false, []Event{
			{Kind: Enter, Waiter: w}, {Kind: NoAnswer, No: 1, Unknown: true}, {Kind: Timer}, {Kind: Yes, No: 2, Token: 7, Top: 7}, {Kind: Lost, Owner: "A"}},
			[]string{"acquireA", "start", "stop waitA", "serveA7+again", "undoA+again"}},
		{"the second lost reply is a verdict", false, []Event{
			{Kind: Enter, Waiter: w}, {Kind: NoAnswer, No: 1, Unknown: true}, {Kind: Timer}, {Kind: NoAnswer, No: 2, Unknown: true}},
			[]string{"acquireA", "start", "stop waitA", "failUnreachable undoA+again"}},
		{"the end of a wait in an outage is not a timeout", false, []Event{
			{Kind: Enter, Waiter: w}, {Kind: End, Waiter: w, Now: silence}},
			[]string{"acquireA", "failUnreachable abandon undoA+again"}},
		{"nor is its deadline, whoever looks at it first", false, []Event{
			{Kind: Enter, Waiter: brief}, {Kind: NoAnswer, No: 1, Unknown: true}, {Kind: Timer, Now: 2 * silence}},
			[]string{"acquireA", "start", "failUnreachable stop undoA+again"}},
		{"an owner that is used up is undone at once, and the next one asks after the pause", false, []Event{
			{Kind: Enter, Waiter: w}, {Kind: No, No: 1, Spent: true}, {Kind: Timer}, {Kind: No, No: 2, Spent: true}, {Kind: End, Waiter: w}},
			[]string{"acquireA", "undoA start", "stop waitB", "undoB start", "failTimeout stop"}},
		{"a refusal is for the one that was asked for", false, []Event{
			{Kind: Enter, Waiter: w}, {Kind: No, No: 1}, {Kind: Enter, Waiter: x}, {Kind: Denied, No: 2}},
			[]string{"acquireA", "waitA", "", "failRefused waitA+run"}},
		{"a grant to an owner of the caller's choice is a reason to ask", true, []Event{
			{Kind: Enter, Waiter: w}, {Kind: No, No: 1}, {Kind: Grant, Owner: "A", Token: 5}, {Kind: No, No: 2, Token: 6}, {Kind: No, No: 3, Token: 6}, {Kind: Grant, Owner: "A", Token: 7}},
			[]string{"acquireA", "waitA", "", "waitA", "start", "stop waitA"}},
		{"a grant that was kept for an answer is confirmed", false, []Event{
			{Kind: Enter, Waiter: w}, {Kind: No, No: 1}, {Kind: Grant, Owner: "A", Token: 7, Top: 7}, {Kind: No, No: 2, Token: 6}, {Kind: Yes, No: 3, Token: 7, Top: 7}},
			[]string{"acquireA", "waitA", "", "renewA7", "serveA7"}},
		{"nobody enters when it is closed", false, []Event{
			{Kind: Enter, Waiter: w}, {Kind: Close}, {Kind: Enter, Waiter: x}},
			[]string{"acquireA", "failClosed abandon undoA+again", "failClosed"}},
	} {
		m := drive()
		m.Asks = c.asks
		*w, *x = *comes(), *comes()
		for i, e := range c.steps {
			if got := says(m.Step(e)); got != c.want[i] {
				t.Errorf("%s: step %d: %q, want %q", c.what, i, got, c.want[i])
			}
		}
	}
}

// TestCrowd: where many wait, their verdicts cost one walk a second.
func TestCrowd(t *testing.T) {
	m := drive()
	all := make([]Waiter, crowd+2)
	for i := range all {
		all[i].Terms = plainTerms
		m.Step(Event{Kind: Enter, Waiter: &all[i], Now: time.Minute})
	}
	m.Step(Event{Kind: No, No: 1, Now: time.Minute})
	for i, c := range []struct {
		at   time.Duration
		left int
	}{{900 * time.Millisecond, crowd + 2}, {1500 * time.Millisecond, crowd + 2}, {2 * time.Second, 0}} {
		m.Step(Event{Kind: Timer, Now: time.Minute + c.at})
		m.Step(Event{Kind: NoAnswer, No: uint64(i + 2), Now: time.Minute + c.at})
		if m.Waiting() != c.left {
			t.Errorf("%v without an answer: %d wait, want %d", c.at, m.Waiting(), c.left)
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

// Begin, Had and Freed are steps without their lists: of one who is alone, and of nobody else.
func TestTheUncontendedWay(t *testing.T) {
	machine := func() *Machine { return &Machine{Fresh: func(string) string { return "a" }} }
	for _, kind := range []Kind{Enter, Try} {
		stepped, straight := machine(), machine()
		v, w := &Waiter{Terms: plainTerms}, &Waiter{Terms: plainTerms}
		same := func() {
			t.Helper()
			got, want := *straight, *stepped
			want.Fresh, got.Fresh, want.out, want.buf = nil, nil, nil, [1]Action{}
			want.asker, got.asker, want.fifo, got.fifo = nil, nil, fifo{n: want.fifo.n}, fifo{n: got.fifo.n}
			got.now = want.now
			require.Equal(t, want, got)
		}
		call := stepped.Step(Event{Kind: kind, Waiter: v, Now: 1})[0]
		call.Waiter = w
		require.Equal(t, call, straight.Begin(w, kind == Try, 1))
		same()
		stepped.Step(Event{Kind: Yes, No: call.No, Token: 7, Top: 9, Now: 2})
		require.True(t, straight.Had(2, 7, 9))
		same()
		require.False(t, straight.Freed("a", 8))
		require.False(t, straight.Freed("b", 7))
		stepped.Step(Event{Kind: Release, Owner: "a", Token: 7})
		require.True(t, straight.Freed("a", 7))
		same()
	}
	others := machine()
	w := &Waiter{Terms: plainTerms}
	call := others.Begin(w, false, 1)
	others.Step(Event{Kind: Enter, Waiter: &Waiter{Terms: plainTerms}, Now: 1})
	require.False(t, others.Had(2, 7, 7), "another one stands behind")
	others.Step(Event{Kind: Yes, No: call.No, Token: 7, Top: 7, Now: 2})
	require.False(t, others.Freed("a", 7))
	ended := machine()
	ended.Begin(&Waiter{Terms: plainTerms, Until: 2}, false, 1)
	require.False(t, ended.Had(2, 7, 7), "its deadline is over")
}
