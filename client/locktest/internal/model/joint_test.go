package model

import "testing"

// joint is a joinable lock over a promotion: A and B share an owner, each has a hold of its own, and C is
// another owner. They do not wait.
func joint(c *Config) { c.Joint, c.Sure, c.Failover, c.Crashes = true, true, Promotion, 0 }

// TestJoint: a renewal that does not name its hold renews the lock of another hold, when the promotion has
// lost its own.
func TestJoint(t *testing.T) {
	sound("joinable, guarded, promotion", joint, guarded(2)).check(t)
	broken("joinable, promotion", Exclusion, joint).check(t)
	s := broken("joinable, guarded, promotion, renewals without a hold", Exclusion, joint, guarded(2))
	s.Flaw = Unnamed
	s.check(t)
}

var jointEdges = recorded(configured(base("joinable", joint, guarded(2), atMost(100_000))))

var jointMutations = []mutation{
	{
		"a renewal without a look at the hold",
		"    mine = lock.holds > 0 and select(2, scan_holds(read_holds(lock), hold)) ~= nil\n",
		"",
	},
	{
		"a release of one hold gives back all",
		"  if left == 0 then\n    pass_on(lock, us, used)",
		"  if true then\n    pass_on(lock, us, used)",
	},
	{
		"a young memory grants one more hold",
		"      if lock.closed > 0 then return { 0, lock.closed, lock.owner, lock.count, 'settling' } end\n",
		"",
	},
}
