// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
)

// successor is a state that follows, in its normal form.
type successor struct {
	state  State
	action Action
	bad    uint8 // the invariants that the action itself broke
}

// Report is what an exploration found.
type Report struct {
	Name   string
	States int
	Edges  int
	Depth  int
	Found  [invariants]*Trace // the shortest way to each violation; nil: there is none
}

func (r *Report) String() string {
	return fmt.Sprintf("%-56s %9d states %10d edges, depth %3d", r.Name, r.States, r.Edges, r.Depth)
}

// errMore says that an exploration ended at Config.Most.
var errMore = errors.New("there are more states")

// explorer is one exploration.
type explorer struct {
	cfg *Config
	// The number of each state, by its hash. Two states with one hash would count as one: with 10 million
	// states the odds of that are 1 to 300,000, and the hash has another seed in each run.
	seen   map[uint64]uint32
	seed   maphash.Seed
	parent []uint32
	by     []Action
	report Report
	line   progress
	next   []State
	over   bool
}

// Explore visits all states that the configuration can reach, breadth first. It stops at the first
// violation that is not admitted.
func Explore(cfg *Config) (*Report, error) {
	e := &explorer{cfg: cfg, seen: map[uint64]uint32{}, seed: maphash.MakeSeed()}
	machines, leases, outlooks = noQueues(), leases[:1], map[outlook]uint8{} // so that each finds the same ways
	e.report.Name = cfg.Name
	err := e.run()
	e.report.States = len(e.seen)
	return &e.report, err
}

func (e *explorer) run() error {
	first := e.cfg.first()
	e.add(&first, 0, Action{}, 0)
	var out []successor
	for len(e.next) > 0 && !e.over {
		level := e.next
		e.next = nil
		number := uint32(len(e.seen) - len(level))
		for i := range level {
			out = e.cfg.successors(&level[i], out[:0])
			e.report.Edges += len(out)
			e.expand(&level[i], number+uint32(i), out)
			if e.over {
				return nil
			}
		}
		if e.cfg.Most > 0 && len(e.seen) > e.cfg.Most {
			return fmt.Errorf("%s: %w", e.cfg.Name, errMore)
		}
		if len(e.next) > 0 {
			e.report.Depth++
		}
	}
	if e.cfg.Progress {
		e.progress()
	}
	return nil
}

// expand adds the states that follow one.
func (e *explorer) expand(s *State, number uint32, out []successor) {
	watched := e.cfg.Progress && s.Clients[0].Waits()
	urgent := watched && pressing(out)
	ways := 0
	for i := range out {
		x := &out[i]
		to := e.add(&x.state, number, x.action, x.bad)
		if e.over {
			return
		}
		if watched && x.action.Move.orderly(urgent) {
			ways++
			if x.state.Clients[0].Waits() {
				e.line.edge(number, to)
			}
		}
	}
	if watched {
		e.line.waits(number, ways)
	}
}

// pressing reports whether one of the actions is urgent.
func pressing(out []successor) bool {
	return slices.ContainsFunc(out, func(x successor) bool { return x.action.Move.urgent() })
}

// add notes a state, and returns its number.
func (e *explorer) add(s *State, parent uint32, by Action, bad uint8) uint32 {
	h := maphash.Comparable(e.seed, *s)
	number, known := e.seen[h]
	if !known {
		number = uint32(len(e.seen))
		e.seen[h] = number
		e.parent, e.by = append(e.parent, parent), append(e.by, by)
		e.next = append(e.next, *s)
		bad |= e.cfg.broken(s)
	}
	for v := range invariants {
		if bad>>v&1 != 0 && e.report.Found[v] == nil {
			e.report.Found[v] = e.cfg.replay(append(e.way(parent), by))
			e.over = e.over || !slices.Contains(e.cfg.Admitted, v)
		}
	}
	return number
}

// way returns the actions that lead to a state.
func (e *explorer) way(number uint32) (actions []Action) {
	for ; number != 0; number = e.parent[number] {
		actions = append(actions, e.by[number])
	}
	slices.Reverse(actions)
	return actions
}

func (cfg *Config) first() State {
	var s State
	for i := range cfg.Pollers {
		s.Clients[cfg.Clients-1-i].Polls = 1
	}
	s.Clients[0].More = cfg.More
	s.Main.Age = cfg.Guard
	cfg.normalize(&s)
	return s
}

// successors returns the states that follow one, appended to out.
func (cfg *Config) successors(s *State, out []successor) []successor {
	for m := range moves {
		if m == lastOrderly {
			continue
		}
		clients := cfg.Clients
		if m.alone() {
			clients = 1
		}
		for i := range clients {
			a := Action{m, uint8(i)}
			if !cfg.may(s, a) {
				continue
			}
			out = append(out, successor{state: *s, action: a})
			x := &out[len(out)-1]
			ok, bad := cfg.apply(&x.state, x.action)
			if !ok {
				out = out[:len(out)-1]
				continue
			}
			x.bad = bad
			cfg.normalize(&x.state)
		}
	}
	return out
}
