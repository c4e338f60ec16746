package model

import "testing"

// joint is a joinable lock over a promotion: A and B share an owner, each has a hold of its own, and C is
// another owner. They do not wait.
func joint(c *Config) {
	c.Clients, c.Joint, c.Sure, c.Failover, c.Crashes = 3, true, true, Promotion, 0
}

// TestJoint: over a promotion a guard is needed.
func TestJoint(t *testing.T) {
	for _, s := range []scenario{
		sound("joinable, guarded, promotion", joint, guarded(2)),
		broken("joinable, promotion", Exclusion, joint),
	} {
		s.check(t)
	}
}
