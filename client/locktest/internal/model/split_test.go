package model

import "testing"

// What guards do when a replica is promoted and the old primary goes on. The old one falls silent
// when it has not heard from its replica for a tick, as with min-replicas-max-lag.

// TestAPromptPromotionNeedsMoreThanAGuard promotes the replica while the old primary still serves.
// A guard of a lease is too short then, because the old one grants after it began. And no guard is
// long enough: the new primary renews what A has, which is no grant, and the old one sees A's old
// lease end and grants the lock to B.
func TestAPromptPromotionNeedsMoreThanAGuard(t *testing.T) {
	for _, s := range []struct {
		scenario
		renews bool
	}{
		{broken("2 clients, guarded by a lease, fenced, prompt promotion",
			Exclusion, clients(2), guarded(2), fenced(1, false), fails(Split)), false},
		{broken("2 clients, guarded by more than a lease, fenced, prompt promotion",
			Exclusion, clients(2), guarded(3), fenced(1, false), fails(Split)), true},
		{broken("2 clients, guarded by four leases, fenced, prompt promotion",
			Exclusion, clients(2), guarded(8), fenced(1, false), fails(Split)), true},
		{broken("2 clients, guarded by four leases, not fenced, prompt promotion",
			Exclusion, clients(2), guarded(8), fails(Split)), true},
	} {
		t.Run(s.Name, func(t *testing.T) {
			r := s.check(t)
			if trace := r.Found[Exclusion]; trace != nil && s.renewsAndGrants(trace) != s.renews {
				t.Errorf("the new primary renews, and the old one grants: %v", !s.renews)
			}
		})
	}
}

// renewsAndGrants reports whether, after the promotion, the new primary renews a lock and then the
// old one grants it to another, and the new one never grants anything.
func (s *scenario) renewsAndGrants(trace *Trace) bool {
	state := s.first()
	renewed, granted := false, false
	for _, a := range trace.Actions {
		failed, old := state.Failed > 0, state.Clients[a.Client].Link == 1
		s.saw = func(lock Lock, r Request, e Effect) {
			switch {
			case !failed:
			case !old && e.Granted != 0:
				renewed = false
			case !old && e.Yes && e.Fence != 0:
				renewed = lock.Owner == r.Owner
			case old && e.Granted != 0:
				granted = renewed
			}
		}
		s.apply(&state, a)
		s.normalize(&state)
	}
	return granted
}

// TestALatePromotionNeedsAGuard promotes the replica only when the old primary serves nobody
// any more. A guard of a lease is enough then. (Half of one is too, with these times: what the old
// one granted last is a tick old by then.)
func TestALatePromotionNeedsAGuard(t *testing.T) {
	for _, s := range []scenario{
		sound("2 clients, guarded by a lease, fenced, late promotion",
			clients(2), guarded(2), fenced(1, true), fails(Split), lingers(1), healthy, sure),
		broken("2 clients, not guarded, fenced, late promotion",
			Exclusion, clients(2), guarded(0), fenced(1, true), fails(Split)),
	} {
		t.Run(s.Name, func(t *testing.T) { s.check(t) })
	}
}
