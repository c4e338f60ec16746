package model

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

// Locks are independent: what is done to two of them is, seen from each, what may be done to one. What
// they share (clients that die, the failover, what the replica has caught up with, the age of a memory,
// the time) happens to all at once. So what is explored to its end with one lock is true of each of
// several, although several with a failover have too many states to explore. Late calls are left out,
// because locks share their number; so are breaks, and connections that are lost, which only who waits loses.

// apart is two locks, of which each step is looked at from either.
type apart struct {
	plain
	one plain
	why *string // they are not independent; "": no step has shown it
}

func bothOf(cfg *Config) apart {
	one := *cfg
	one.Locks = 1
	return apart{plain{cfg, nil}, plain{&one, nil}, new(string)}
}

// seen is what a state is for one of its locks: who is at the other one does nothing.
func (a apart) seen(s State, k uint8) State {
	for _, locks := range [...]*[maxLocks]Lock{&s.Main.Locks, &s.Old.Locks, &s.Replica} {
		*locks = [maxLocks]Lock{locks[k]}
	}
	s.Top = [maxLocks]Token{s.Top[k]}
	for i := range s.Clients[:a.Clients] {
		c := &s.Clients[i]
		if c.Lock != k && c.Phase != Dead {
			*c = Client{Deaf: c.Deaf, Polls: c.Polls, Link: c.Link, Note: c.Note}
		}
		if c.Note.Lock != k {
			c.Note = Note{}
		}
		c.Lock, c.Note.Lock = 0, 0
	}
	a.one.normalize(&s)
	return s
}

// successors are those of two locks. Each must be, for either, one that follows there too, or nothing,
// and break no more than those do.
func (a apart) successors(s *State, out []successor[State, Action]) []successor[State, Action] {
	out = a.plain.successors(s, out)
	var from [maxLocks]State
	var steps [maxLocks][]successor[State, Action]
	for k := range from {
		from[k] = a.seen(*s, uint8(k))
		steps[k] = a.one.successors(&from[k], nil)
	}
	for _, x := range out {
		var bad, broken uint8
		for k := range from {
			to := a.seen(x.state, uint8(k))
			broken |= a.one.broken(&to)
			possible := to == from[k]
			for _, y := range steps[k] {
				if y.state == to {
					possible = true
					bad |= y.bad
				}
			}
			if !possible {
				*a.why = fmt.Sprintf("lock %d does beside another what it does not by itself: %v in\n%+v\nleads to\n%+v",
					k, x.action, from[k], to)
			}
		}
		if missed := x.bad&^bad | a.broken(&x.state)&^broken; missed != 0 {
			*a.why = fmt.Sprintf("two locks break what neither does: %b, by %v in\n%+v", missed, x.action, *s)
		}
	}
	return out
}

// walk takes 100 steps at random, so many times. It returns why the locks are not independent.
func (a apart) walk(times int) string {
	rng := rand.New(rand.NewPCG(1, 2))
	for range times {
		s := a.first()
		for range 100 {
			out := a.successors(&s, nil)
			if *a.why != "" || len(out) == 0 {
				break
			}
			s = out[rng.IntN(len(out))].state
		}
	}
	return *a.why
}

var both = []scenario{
	sound("2 clients, 2 locks", clients(2), locks(2)),
	sound("3 clients, 2 locks, promotion", locks(2), fails(Promotion)),
	sound("3 clients, 2 locks, empty restart", locks(2), fails(Restart)),
	sound("3 clients, 2 locks, replicas, promotion", locks(2), replicas, fails(Promotion)),
	sound("3 clients, 2 locks, replicas, split brain", locks(2), replicas, fails(Split)),
	sound("3 clients, 2 locks, guarded, promotion", locks(2), guarded(2), fails(Promotion)),
	sound("3 clients, 2 locks, guarded, empty restart", locks(2), guarded(2), fails(Restart)),
	sound("3 clients, 2 locks, guarded, fenced, split brain", locks(2), guarded(3), fenced(1, true), fails(Split)),
}

func TestLocksAreIndependent(t *testing.T) {
	walks := 100
	if os.Getenv("HOLDFAST_MODEL") == "full" {
		walks = 10_000
	}
	for _, s := range both {
		t.Run(s.Name, func(t *testing.T) {
			if why := bothOf(&s.Config).walk(walks); why != "" {
				t.Error(why)
			}
		})
	}
	t.Run("to the end", func(t *testing.T) {
		a := bothOf(&both[0].Config)
		r, err := explore[State, Action](a)
		t.Log(r)
		if err != nil || *a.why != "" {
			t.Error(err, *a.why)
		}
	})
}

// Where the clock stands still, the last token that the server remembers is of both.
func TestLocksThatAreNotIndependentAreNoticed(t *testing.T) {
	s := sound("2 clients, 2 locks, clock stands still", clients(2), locks(2), coarse)
	if bothOf(&s.Config).walk(400) == "" {
		t.Error("nobody noticed")
	}
}
