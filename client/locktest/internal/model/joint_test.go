package model

import (
	"testing"

	"github.com/holdfast-go/holdfast/functions"
)

func joint(name string, change ...func(*Joint)) Joint {
	j := Joint{Bounds: Bounds{Name: name}, Lease: 2, Guard: 2, Crashes: 1}
	for _, f := range change {
		f(&j)
	}
	return j
}

func unnamed(j *Joint)   { j.Unnamed = true }
func unguarded(j *Joint) { j.Guard = 0 }

// TestJoint explores a joinable lock over a promotion. A renewal that does not name its hold renews the
// lock of another hold, when the promotion has lost its own.
func TestJoint(t *testing.T) {
	for _, c := range []struct {
		Joint
		finds bool
	}{
		{joint("joinable, guarded, promotion, one dies"), false},
		{joint("joinable, promotion", unguarded), true},
		{joint("joinable, guarded, promotion, renewals without a hold", unnamed), true},
	} {
		t.Run(c.Name, func(t *testing.T) {
			r, err := ExploreJoint(c.Joint, nil)
			if t.Log(r); err != nil {
				t.Fatal(err)
			}
			for v, trace := range r.Found {
				switch {
				case trace == nil && c.finds && Invariant(v) == Exclusion:
					t.Errorf("not found: %v", Invariant(v))
				case trace != nil && !(c.finds && Invariant(v) == Exclusion):
					t.Errorf("%v:\n%v", Invariant(v), trace)
				case trace != nil:
					t.Logf("%v, after %d acts:\n%v", Invariant(v), len(trace.Actions), trace)
				}
			}
		})
	}
}

var jointEdges = recorded(func(rec *recorder) error {
	j := joint("joinable")
	_, err := ExploreJoint(j, rec.witness(false, j.Guard))
	return err
})

// TestJointTie makes each call of the joinable lock's model with the library.
func TestJointTie(t *testing.T) {
	all, err := jointEdges()
	if err != nil {
		t.Fatal(err)
	}
	calls, err := replay(t, functions.Source, all)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d calls agree", calls)
}

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

// TestTheJointTieNoticesAChange does so with what is about holds.
func TestTheJointTieNoticesAChange(t *testing.T) { notices(t, jointMutations, jointEdges) }
