package model

import (
	"errors"
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
