package model

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/functions"
)

// The tie of a quorum's calls: each is made with the library, as those of guarded locks are.

var votedEdges = recorded(func(rec *recorder) error {
	for _, q := range []Quorum{
		three("2 clients, a restart", restarts(1)),
		three("2 clients, a clock ahead, a late vote", clocks(1), late(1), raises, most(60_000)),
		three("2 clients, one dies, a key is lost", dies, losing, admitting(Exclusion, Tokens), most(60_000)),
	} {
		if _, err := ExploreQuorum(q, rec.witness(true, q.Guard)); err != nil && !errors.Is(err, errMore) {
			return err
		}
	}
	return nil
})

// TestQuorumTie makes each call of the quorum's model with the library.
func TestQuorumTie(t *testing.T) {
	all, err := votedEdges()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	calls, err := replay(t, functions.Source, all)
	if err != nil {
		t.Fatal(err)
	}
	kinds, raised, refused, young := map[Kind]int{}, 0, 0, 0
	for _, x := range all {
		kinds[x.request.Kind]++
		if x.request.Kind == Raise && x.effect.Reply.Yes && x.effect.Lock.Fence > x.lock.Fence {
			raised++
		}
		if x.request.Kind == Raise && !x.effect.Reply.Yes {
			refused++
		}
		if x.request.Kind == Raise && x.env.Young {
			young++
		}
	}
	for _, k := range []Kind{Acquire, Raise, Leave} {
		if kinds[k] == 0 {
			t.Errorf("no call of %v", k)
		}
	}
	if raised == 0 || refused == 0 || young == 0 {
		t.Errorf("%d raised, %d refused to, %d raises at a young server", raised, refused, young)
	}
	t.Logf("%d calls of %v agree, %d raised, %d refused to, %d raises at a young server, %v",
		calls, kinds, raised, refused, young, time.Since(began).Round(time.Millisecond))
}

// raiseMutations are changes of what the library does for a quorum.
var raiseMutations = []mutation{
	{"a raise raises nothing", "    if raise and raise > lock.fence then\n", "    if false then\n"},
	{"a raise lowers", "    if raise and raise > lock.fence then\n", "    if raise then\n"},
	{"a raised token is not remembered", "  if top > us and top > last and top <= us + AHEAD_US then token = ms(top) + 1 end\n", ""},
	{"a raise without a look at the owner", "  local mine = held_by(lock, owner)\n    and", "  local mine = lock.ends > 0\n    and"},
	{"a raise does not begin the memory", "  if raise and not held_by(lock, owner) then age(us) end\n", ""},
	{
		"a raise takes a lock that is free",
		"  local mine = held_by(lock, owner)\n    and",
		"  if raise and is_free(lock, us) then\n" +
			"    assign(lock, { owner = owner, ttl = ttl, tokens = 1, channel = '', holds = '' }, us, ttl, 0)\n" +
			"  end\n  local mine = held_by(lock, owner)\n    and",
	},
}

// TestTheQuorumTieNoticesAChange does so with what is about several servers.
func TestTheQuorumTieNoticesAChange(t *testing.T) { notices(t, raiseMutations, votedEdges) }
