package model

import (
	"os"
	"slices"
	"testing"
)

// three is a quorum with two clients, whose servers' clocks stand still.
func three(name string, change ...func(*Quorum)) Quorum {
	q := Quorum{Bounds: Bounds{Name: name}, Clients: 2, Lease: 2, Guard: 2}
	for _, f := range change {
		f(&q)
	}
	return q
}

func voters(n int) func(*Quorum)             { return func(q *Quorum) { q.Clients = n } }
func restarts(n uint8) func(*Quorum)         { return func(q *Quorum) { q.Restarts = n } }
func late(n uint8) func(*Quorum)             { return func(q *Quorum) { q.Strays = n } }
func clocks(n uint8) func(*Quorum)           { return func(q *Quorum) { q.Ahead = n } }
func guardOf(ticks int8) func(*Quorum)       { return func(q *Quorum) { q.Guard = ticks } }
func admitting(v ...Invariant) func(*Quorum) { return func(q *Quorum) { q.Admitted = v } }
func most(states int) func(*Quorum)          { return func(q *Quorum) { q.Most = states } }
func dies(q *Quorum)                         { q.Crashes = 1 }
func attended(q *Quorum)                     { q.Progress = true }
func raises(q *Quorum)                       { q.Raises = true }
func behind(q *Quorum)                       { q.Behind = true }
func calm(q *Quorum)                         { q.Calm = true }
func losing(q *Quorum)                       { q.Losses = 1 }

// session is a quorum and what must be found in it; nothing else may be.
type session struct {
	Quorum
	finds []Invariant
}

func safe(name string, change ...func(*Quorum)) session { return session{three(name, change...), nil} }

// unsafe ends at the first violation that is not admitted.
func unsafe(name string, v Invariant, change ...func(*Quorum)) session {
	return session{three(name, change...), []Invariant{v}}
}

// alsoFinds is another violation that comes with it.
func (s session) alsoFinds(v Invariant) session {
	s.finds = append(s.finds, v)
	return s
}

var sessions = []session{
	safe("2 clients, one dies, 2 restarts", dies, restarts(2)),
	safe("2 clients, a late vote", late(1)),
	safe("2 clients, a clock ahead, a restart", clocks(1), restarts(1)),
	safe("3 clients, one dies", voters(3), dies),
	safe("3 clients, a restart", voters(3), restarts(1)),
	safe("2 clients that go on", attended),
	safe("3 clients that go on, nothing fails", voters(3), attended, calm),

	unsafe("2 clients, guard shorter than the lease", Exclusion, guardOf(1), restarts(1)),
	unsafe("2 clients, a clock comes back that is behind", Tokens, behind, restarts(2)),
	// A minority, and a server that the holder has no vote of, are a majority. Where the clock of that
	// server is behind the token that was lost with the key, the next one's is lower.
	unsafe("2 clients, a key is lost at one server", Exclusion, losing).alsoFinds(Tokens),
}

// longer are explored with HOLDFAST_MODEL=full.
var longer = []session{
	safe("2 clients, a late raise", late(1), raises),
	safe("2 clients, a clock ahead, a late vote, a restart", clocks(1), late(1), restarts(1)),
	safe("2 clients, 2 late votes, a restart", late(2), restarts(1)),
	safe("2 clients, 2 clocks ahead, one dies, 2 restarts", clocks(2), dies, restarts(2)),
	safe("3 clients, 3 restarts", voters(3), restarts(3), most(5_000_000)),
	safe("3 clients, one dies, a late vote, a restart", voters(3), dies, late(1), restarts(1), most(5_000_000)),
	safe("2 clients that go on, one dies", dies, attended),
	safe("2 clients that go on, one dies, a restart", dies, restarts(1), attended, most(5_000_000)),
}

// TestQuorum explores the lock at three servers.
func TestQuorum(t *testing.T) {
	all := sessions
	if os.Getenv("HOLDFAST_MODEL") == "full" {
		all = append(slices.Clip(all), longer...)
	}
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) { s.check(t) })
	}
}

// TestMistakesAreFound breaks one rule of the quorum after the other.
func TestMistakesAreFound(t *testing.T) {
	for _, m := range []struct {
		flaw   Mistake
		finds  Invariant
		change []func(*Quorum)
	}{
		{OneIsEnough, Exclusion, []func(*Quorum){admitting(Tokens)}},
		{Unraised, Tokens, nil},
		{LowToken, Tokens, nil},
		{Unremembered, Tokens, nil},
		{Unguarded, Exclusion, []func(*Quorum){restarts(1)}},
		{CountedTwice, Exclusion, []func(*Quorum){admitting(Tokens)}},
		{OwnerAgain, Exclusion, []func(*Quorum){admitting(Tokens)}},
		{OneRenews, Exclusion, nil},
		{LateCount, Exclusion, nil},
		{LongBelief, Exclusion, nil},
		{NoLead, Progress, []func(*Quorum){voters(3), attended, calm}},
	} {
		t.Run(m.flaw.String(), func(t *testing.T) {
			s := unsafe(m.flaw.String(), m.finds, m.change...)
			s.Flaw = m.flaw
			s.check(t)
		})
	}
}

func (s session) check(t *testing.T) {
	t.Helper()
	found[Poll, Deed](t, &polled{&s.Quorum, s.rules(), nil}, s.finds)
}
