package model

import (
	"errors"
	"sync"
)

// edge is one call in one state.
type edge struct {
	lock    Lock
	env     Env
	request Request
	coarse  bool
	guard   int8 // 0: the lock is not guarded
}

// tied is an edge and what the model says that it does.
type tied struct {
	edge
	effect Effect
}

// recorder keeps each different call that a server runs.
type recorder struct {
	seen map[edge]bool
	all  []tied
}

// witness sees the calls of one exploration. guard is that of the lock; 0: it has none.
func (rec *recorder) witness(coarse bool, guard int8) Witness {
	return func(lock Lock, env Env, r Request, e Effect) {
		x := edge{lock, env, r, coarse, guard}
		for i := range maxClients { // who is not there hears nothing
			if x.lock.find(ownerOf(i, 0)) < 0 && x.lock.find(ownerOf(i, 1)) < 0 && (r.Owner == 0 || r.Owner.client() != i) {
				x.env.Heard &^= 1 << i
				x.env.Pollers &^= 1 << i
			}
		}
		if !rec.seen[x] {
			rec.seen[x] = true
			rec.all = append(rec.all, tied{x, e})
		}
	}
}

// recorded returns the different calls of some explorations. Of those that have a bound, the atMost(100_000)
// states are enough.
func recorded(explore func(rec *recorder) error) func() ([]tied, error) {
	return sync.OnceValues(func() ([]tied, error) {
		rec := &recorder{seen: map[edge]bool{}}
		err := explore(rec)
		return rec.all, err
	})
}

// configured explores plain locks.
func configured(configs ...Config) func(rec *recorder) error {
	return func(rec *recorder) error {
		for _, cfg := range configs {
			guard := int8(0)
			if cfg.Level == Guarded {
				guard = cfg.Guard
			}
			if _, err := Explore(cfg, rec.witness(cfg.Coarse, guard)); err != nil && !errors.Is(err, errMore) {
				return err
			}
		}
		return nil
	}
}

// edges are the calls of some configurations that have all kinds of them.
var edges = recorded(func(rec *recorder) error {
	crafted(rec)
	return configured(all...)(rec)
})

// crafted are calls that come about only after much has gone wrong: somebody joins a line in which one has
// not asked for long, and one that stands there is to give back a grant.
func crafted(rec *recorder) {
	cfg := base("crafted", polling(3))
	lock := Lock{Owner: ownerOf(0, 0), Rem: 2, Exp: 4, Fence: 1, Age: 3}
	lock.Line[0], lock.Line[1] = Waiter{Owner: ownerOf(1, 0), Age: 3}, Waiter{Owner: ownerOf(1, 1)}
	env, saw := Env{Pollers: 7, Now: 2}, rec.witness(false, 0)
	for _, r := range []Request{{Kind: Wait, Owner: ownerOf(2, 0)}, {Kind: Leave, Owner: ownerOf(1, 1), Fence: 1}} {
		saw(lock, env, r, cfg.Do(lock, env, r))
	}
}

var all = []Config{
	base("2 clients, clock stands still", clients(2), coarse, healthy, atMost(100_000)),
	base("2 clients, promotion, clock stands still", clients(2), fails(Promotion), coarse, healthy,
		admit(Exclusion, Tokens), atMost(100_000)),
	base("2 clients, a poller", clients(2), polling(1), atMost(100_000)),
	base("2 clients, pollers", clients(2), polling(2), healthy),
	base("3 clients", healthy, atMost(100_000)),
	base("2 clients, a break, lost subscriptions", clients(2), breaks, drops, atMost(100_000)),
	base("2 clients, a stray", clients(2), strays(1), atMost(100_000)),
	base("2 clients, pollers, a stray", clients(2), polling(2), strays(1), healthy, atMost(100_000)),
}
