// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/seeded"
)

// base is a configuration with three clients, of which one may die.
func base(name string, change ...func(*Config)) Config {
	c := Config{Name: name, Clients: 3, Lease: 2, Provisional: 1, Silence: 2, Crashes: 1, Linger: 3}
	for _, f := range change {
		f(&c)
	}
	return c
}

func clients(n int) func(*Config)        { return func(c *Config) { c.Clients = n } }
func strays(n uint8) func(*Config)       { return func(c *Config) { c.Strays = n } }
func fails(f Failover) func(*Config)     { return func(c *Config) { c.Failover = f } }
func admit(v ...Invariant) func(*Config) { return func(c *Config) { c.Admitted = v } }
func guarded(guard int8) func(*Config)   { return func(c *Config) { c.Level, c.Guard = Guarded, guard } }
func replicas(c *Config)                 { c.Level = Replicas }
func lingers(ticks int8) func(*Config)   { return func(c *Config) { c.Linger = ticks } }

func atMost(states int) func(*Config) { return func(c *Config) { c.Most = states } }

// nearest are the states that are reached in few steps.
var nearest = atMost(200_000)

// frequent makes the provisional lease longer than the time from one question to the next.
func frequent(c *Config)          { c.Lease, c.Provisional = 3, 2 }
func watched(c *Config)           { c.Progress = true }
func crowded(c *Config)           { c.More = 1 }
func odd(c *Config)               { c.Odd = true }
func sure(c *Config)              { c.Sure = true }
func drops(c *Config)             { c.Drops = true }
func healthy(c *Config)           { c.Crashes = 0 }
func breaks(c *Config)            { c.Breaks = 1 }
func polling(n int) func(*Config) { return func(c *Config) { c.Pollers, c.Ages = n, true } }

// joint is a joinable lock over a promotion: A and B share an owner, each has a hold of its own, and C is
// another owner. They do not wait.
func joint(c *Config) {
	c.Clients, c.Joint, c.Sure, c.Failover, c.Crashes = 3, true, true, Promotion, 0
}

// fenced is a primary that serves nobody when it has not heard from its replica. A patient replica
// is promoted only after that.
func fenced(ticks int8, patient bool) func(*Config) {
	return func(c *Config) { c.Contact, c.Patient = ticks, patient }
}

// scenario is a configuration and what must be found in it; nothing else may be.
type scenario struct {
	Config
	finds  []Invariant
	source []string // changes of the library: old, new, old, new
}

func sound(name string, change ...func(*Config)) scenario {
	return scenario{Config: base(name, change...)}
}

// unsound is a scenario with a violation that is admitted. It is explored to its end all the same.
func unsound(name string, v []Invariant, change ...func(*Config)) scenario {
	return scenario{Config: base(name, append(change, admit(v...))...), finds: v}
}

// broken ends at the first violation.
func broken(name string, v Invariant, change ...func(*Config)) scenario {
	return scenario{Config: base(name, change...), finds: []Invariant{v}}
}

var overlap = []Invariant{Exclusion}

var scenarios = []scenario{
	// Without a failover.
	sound("2 clients", clients(2), watched),
	sound("3 clients", nearest),
	sound("2 clients, one of 2 goroutines", clients(2), crowded, healthy, nearest),
	sound("2 clients, a stray", clients(2), strays(1), nearest),
	sound("2 clients, one of 2 goroutines, odd, a stray", clients(2), crowded, odd, strays(1), nearest),
	sound("2 clients, lost subscriptions", clients(2), drops, healthy, sure, watched),
	sound("2 clients, a break", clients(2), breaks, healthy, sure, watched),
	sound("2 clients, pollers", clients(2), polling(2), watched, frequent),
	broken("2 clients, pollers, each asks once in a provisional lease",
		Progress, clients(2), polling(2), watched),
	sound("2 clients, tries, declines, errors and closed clients", clients(2), odd, healthy),

	// The default level.
	unsound("2 clients, promotion", overlap, clients(2), fails(Promotion), healthy, sure),
	unsound("2 clients, empty restart", overlap, clients(2), fails(Restart), healthy, sure, watched),

	// With all replicas.
	sound("2 clients, replicas, promotion", clients(2), replicas, fails(Promotion), healthy, sure),
	sound("2 clients, replicas, split brain",
		clients(2), replicas, fails(Split), lingers(1), healthy, sure, nearest),
	broken("2 clients, replicas, empty restart", Exclusion, clients(2), replicas, fails(Restart)),

	// Guarded.
	sound("2 clients, guarded, promotion", clients(2), guarded(2), fails(Promotion), healthy, sure),
	sound("2 clients, guarded, empty restart", clients(2), guarded(2), fails(Restart), healthy, sure, watched),
	broken("2 clients, guard shorter than the lease, promotion",
		Exclusion, clients(2), guarded(1), fails(Promotion)),
	broken("2 clients, guarded, split brain", Exclusion, clients(2), guarded(2), fails(Split)),

	// Joinable. With a promotion it needs a guard.
	sound("joinable, guarded, promotion", joint, guarded(2)),
	broken("joinable, promotion", Exclusion, joint),

	// Guarded, and the old primary falls silent when it has not heard from its replica for a tick, as with
	// min-replicas-max-lag. If the replica is promoted before that, a guard of a lease is too short, because
	// the old one grants after it began. And no guard is long enough, as the traces show: the new primary
	// renews what A has, which is no grant, and the old one sees A's old lease end and grants the lock to B.
	broken("2 clients, guarded by a lease, fenced, prompt promotion",
		Exclusion, clients(2), guarded(2), fenced(1, false), fails(Split)),
	broken("2 clients, guarded by four leases, fenced, prompt promotion",
		Exclusion, clients(2), guarded(8), fenced(1, false), fails(Split)),
	// If it is promoted when the old one serves nobody any more, a guard of a lease is enough. (Half of one
	// is too, with these times: what the old one granted last is a tick old by then.)
	sound("2 clients, guarded by a lease, fenced, late promotion",
		clients(2), guarded(2), fenced(1, true), fails(Split), lingers(1), healthy, sure),
	broken("2 clients, not guarded, fenced, late promotion",
		Exclusion, clients(2), guarded(0), fenced(1, true), fails(Split)),
}

func TestProtocol(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.Name, func(t *testing.T) { s.check(t) })
	}
}

// check explores. Each violation must be one that is to be found, or is admitted, and its trace must lead
// to it.
func (s *scenario) check(t *testing.T) (r *Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.server = serve(t, seeded.Text(t, functions.Source, s.source...))
		found, err := Explore(&s.Config)
		if r = found; err != nil { // only what has a bound
			t.Log(err)
		}
		t.Log(r)
		for v := range invariants {
			trace, expected := r.Found[v], slices.Contains(s.finds, v)
			switch {
			case trace == nil && expected:
				t.Errorf("not found: %v", v)
			case trace == nil || !expected && slices.Contains(s.Admitted, v):
			case !expected:
				t.Errorf("%v:\n%v", v, trace)
			default:
				t.Logf("%v, after %d steps:\n%v", v, len(trace.Actions), trace)
			}
			if trace != nil && v != Progress && !s.leads(trace.Actions, v) {
				t.Errorf("the trace does not lead to: %v", v)
			}
		}
	})
	return r
}

// leads reports whether the last action breaks an invariant, and none before it does.
func (s *scenario) leads(actions []Action, v Invariant) bool {
	state := s.first()
	for n, a := range actions {
		ok, bad := s.apply(&state, a)
		if !ok {
			return false
		}
		s.normalize(&state)
		if (bad|s.broken(&state))>>v&1 != 0 {
			return n == len(actions)-1
		}
	}
	return false
}
