// SPDX-License-Identifier: Apache-2.0

package model

// Invariant is what must be true in each state, or of each move.
type Invariant uint8

// The invariants.
const (
	Exclusion Invariant = iota // no two clients hold one lock by their own view
	Progress                   // who waits and lives gets the lock when nothing fails any more
	Expiry                     // no key is without an expiry, and none expires before its lease
	Ownership                  // a release or a leave never ends another's lock
	Order                      // nobody overtakes a waiter that can be reached
	invariants
)

func (v Invariant) String() string {
	return [...]string{"two holders", "a waiter that is never served", "a key without an expiry", "another's lock was ended", "a waiter was overtaken"}[v]
}

// broken returns the invariants that a state breaks, as bits.
func (cfg *Config) broken(s *State) (out uint8) {
	holders := 0
	for i := range s.Clients[:cfg.Clients] {
		c := &s.Clients[i]
		joined := cfg.Joint && i == 1 && s.Clients[0].Believes()
		if c.Believes() && c.Void == 0 && !joined {
			holders++
		}
	}
	if holders > 1 {
		out |= 1 << Exclusion
	}
	for _, l := range s.locks() {
		if l.unbounded() {
			out |= 1 << Expiry
		}
	}
	return out
}

// unbounded reports whether a key does not go, or goes before its lease does.
func (l *Lock) unbounded() bool {
	return l.Owner != 0 && (l.Exp == forever || l.Exp <= 0 || l.Exp < l.Rem)
}

// judge returns the invariants that a call breaks.
func (cfg *Config) judge(before *Lock, env Env, r Request, e *Effect) (out uint8) {
	if e.Granted != 0 && cfg.overtaken(before, env, r, e) {
		out |= 1 << Order
	}
	if r.Kind != Release && r.Kind != Leave {
		return out
	}
	if before.Rem > 0 && before.Owner != r.Owner {
		after := &e.Lock
		if after.Owner != before.Owner || after.Fence != before.Fence || after.Rem < before.Rem {
			out |= 1 << Ownership
		}
	}
	return out
}

// overtaken reports whether somebody who stood in line before the new holder, and can be reached,
// stands there still.
func (cfg *Config) overtaken(before *Lock, env Env, r Request, e *Effect) bool {
	for _, w := range before.Line {
		if w.Owner == 0 || w.Owner == e.Lock.Owner {
			return false
		}
		if cfg.reachable(w, env, r.Owner) && e.Lock.find(w.Owner) >= 0 {
			return true
		}
	}
	return false
}

// reachable reports whether a waiter would learn that the lock is its own.
func (cfg *Config) reachable(w Waiter, env Env, caller Owner) bool {
	switch {
	case w.Owner == caller:
		return true
	case env.Pollers>>w.Owner.client()&1 != 0:
		return int8(w.Age) <= cfg.Silence
	}
	return env.Heard>>w.Owner.client()&1 != 0
}
