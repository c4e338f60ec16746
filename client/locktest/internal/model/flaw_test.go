package model

import "testing"

// flawed is a rule that is broken on purpose, and what must be found then.
type flawed struct {
	flaw   Flaw
	finds  Invariant
	change []func(*Config)
}

var flaws = []flawed{
	{BlindRelease, Ownership, nil},
	{BlindRenew, Exclusion, nil},
	{NoMemory, Tokens, []func(*Config){coarse}},
	{NoExpiry, Expiry, nil},
	{Overtake, Order, []func(*Config){clients(3), healthy}},
	{UnseenAcks, Exclusion, []func(*Config){fails(Promotion), replicas}},
	{NoConfirm, Exclusion, []func(*Config){fails(Promotion), replicas}},
	{LateDeadline, Exclusion, nil},
	{SharedOwner, Exclusion, []func(*Config){strays(1)}},
	{OldNotes, Exclusion, []func(*Config){breaks}},
	{GuardedRepeats, Exclusion, []func(*Config){fails(Promotion), guarded(2)}},
	{EndlessProvision, Progress, []func(*Config){watched}},
}

// TestFlawsAreFound breaks one rule of the model after the other.
func TestFlawsAreFound(t *testing.T) {
	for _, f := range flaws {
		t.Run(f.flaw.String(), func(t *testing.T) {
			s := broken(f.flaw.String(), f.finds, append([]func(*Config){clients(2)}, f.change...)...)
			s.Flaw = f.flaw
			s.check(t)
		})
	}
	t.Run("deadline after the server's", func(t *testing.T) {
		s := broken("deadline after the server's", Exclusion, clients(2))
		s.Belief = s.Lease + 1
		s.check(t)
	})
}
