package model

import "testing"

// mistaken is a rule of a quorum that is broken on purpose, and what must be found then.
type mistaken struct {
	flaw   Mistake
	finds  Invariant
	change []func(*Quorum)
}

var mistakesFound = []mistaken{
	{OneIsEnough, Exclusion, nil},
	{OneRound, Tokens, nil},
	{RaiseAtOne, Tokens, nil},
	{FirstToken, Tokens, nil},
	{Unremembered, Tokens, nil},
	{Unguarded, Exclusion, []func(*Quorum){restarts(1)}},
	{CountedTwice, Exclusion, nil},
	{OwnerAgain, Exclusion, nil},
	{OldVotes, Exclusion, nil},
	{OneRenews, Exclusion, nil},
	{LateCount, Exclusion, nil},
	{LongBelief, Exclusion, nil},
}

func restarts(n uint8) func(*Quorum) { return func(q *Quorum) { q.Restarts = n } }

// TestMistakesAreFound breaks one rule of the quorum after the other.
func TestMistakesAreFound(t *testing.T) {
	for _, m := range mistakesFound {
		t.Run(m.flaw.String(), func(t *testing.T) {
			q := two(m.flaw.String(), m.change...)
			q.Flaw = m.flaw
			r, err := ExploreQuorum(q, nil)
			t.Log(r, err)
			for v, tr := range r.Found {
				if tr != nil {
					t.Logf("%v\n%v", Invariant(v), tr)
				}
			}
			if r.Found[m.finds] == nil {
				t.Errorf("not found: %v", m.finds)
			}
		})
	}
}
