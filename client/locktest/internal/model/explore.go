package model

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"
)

// Report is what an exploration found.
type Report struct {
	Config Config
	States int
	Edges  int
	Depth  int
	Took   time.Duration
	Found  [invariants]*Trace // the shortest way to each violation; nil: there is none
}

func (r *Report) String() string {
	return fmt.Sprintf("%-56s %9d states %10d edges, depth %3d, %6.1f s",
		r.Config.Name, r.States, r.Edges, r.Depth, r.Took.Seconds())
}

// errMore says that an exploration ended at Config.Most.
var errMore = errors.New("there are more states")

// Explore visits all states that the configuration can reach, breadth first. It stops at the first
// violation that is not admitted.
func Explore(cfg Config, saw Witness) (*Report, error) {
	e := &explorer{cfg: &cfg, saw: saw, seen: newTable(), seed: maphash.MakeSeed()}
	e.report.Config = cfg
	began := time.Now()
	err := e.explore()
	e.report.States, e.report.Took = e.seen.used, time.Since(began)
	return &e.report, err
}

// explorer is one exploration.
type explorer struct {
	cfg    *Config
	saw    Witness
	seen   *table
	seed   maphash.Seed
	parent []uint32
	by     []Action
	report Report
	line   progress
	next   []State
	over   bool
}

// successor is a state that follows.
type successor struct {
	state  State
	action Action
	bad    uint8
}

func (cfg *Config) first() State {
	var s State
	for i := range cfg.Pollers {
		s.Clients[cfg.Clients-1-i].Polls = 1
	}
	s.Main.Age = cfg.Guard
	if cfg.Coarse {
		s.Now = 1
	}
	cfg.normalize(&s)
	return s
}

func (e *explorer) explore() error {
	first := e.cfg.first()
	e.add(&first, 0, Action{}, 0)
	var out []successor
	for len(e.next) > 0 && !e.over {
		level := e.next
		e.next = nil
		number := uint32(e.seen.used - len(level))
		for i := range level {
			s := &level[i]
			out = e.cfg.successors(s, out[:0], e.saw)
			e.report.Edges += len(out)
			e.expand(s, number+uint32(i), out)
			if e.over {
				return nil
			}
		}
		if e.cfg.Most > 0 && e.seen.used > e.cfg.Most {
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
	urgent := watched && slices.ContainsFunc(out, func(x successor) bool { return x.action.Move.urgent() })
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

// add notes a state, and returns its number.
func (e *explorer) add(s *State, parent uint32, by Action, bad uint8) uint32 {
	number, fresh := e.seen.put(maphash.Comparable(e.seed, *s))
	if fresh {
		e.parent, e.by = append(e.parent, parent), append(e.by, by)
		e.next = append(e.next, *s)
		bad |= e.cfg.broken(s)
	}
	for v := range invariants {
		if bad>>v&1 != 0 && e.report.Found[v] == nil {
			e.report.Found[v] = e.trace(parent, by)
			e.over = e.over || !slices.Contains(e.cfg.Admitted, v)
		}
	}
	return number
}

// successors returns the states that follow one, in their normal form.
func (cfg *Config) successors(s *State, out []successor, saw Witness) []successor {
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
			ok, bad := cfg.apply(&x.state, x.action, saw)
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
