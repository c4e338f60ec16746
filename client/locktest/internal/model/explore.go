package model

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"
)

// Bounds are how far an exploration goes, and what it looks for.
type Bounds struct {
	Name     string
	Progress bool        // check also that client 0 is served in the end
	Admitted []Invariant // violations that are noted and passed by
	Most     int         // states; more is an error. 0: no bound
}

func (b *Bounds) bounds() *Bounds { return b }

// space is what is explored: states in their normal form, and actions that lead from one to the next.
type space[S, A comparable] interface {
	bounds() *Bounds
	first() S
	successors(s *S, out []successor[S, A]) []successor[S, A] // appended to out
	broken(s *S) (invariants uint8)                           // that a state breaks, as bits
	waits(s *S) bool                                          // client 0 waits, and lives
	urgent(s *S, a A) bool                                    // happens before time passes, when nothing fails any more
	orderly(s *S, a A, urgent bool) bool                      // happens when nothing fails any more
	replay(actions []A) *Trace[A]
}

// successor is a state that follows.
type successor[S, A comparable] struct {
	state  S
	action A
	bad    uint8 // the invariants that the action itself broke
}

// Report is what an exploration found.
type Report[A comparable] struct {
	Name   string
	States int
	Edges  int
	Depth  int
	Took   time.Duration
	Found  [invariants]*Trace[A] // the shortest way to each violation; nil: there is none
}

func (r *Report[A]) String() string {
	return fmt.Sprintf("%-56s %9d states %10d edges, depth %3d, %6.1f s",
		r.Name, r.States, r.Edges, r.Depth, r.Took.Seconds())
}

// errMore says that an exploration ended at Bounds.Most.
var errMore = errors.New("there are more states")

// explorer is one exploration.
type explorer[S, A comparable] struct {
	space  space[S, A]
	limits *Bounds
	seen   table
	seed   maphash.Seed
	parent []uint32
	by     []A
	report Report[A]
	line   progress
	next   []S
	over   bool
}

// explore visits all states that can be reached, breadth first. It stops at the first violation that
// is not admitted.
func explore[S, A comparable](of space[S, A]) (*Report[A], error) {
	e := &explorer[S, A]{space: of, limits: of.bounds(), seen: table{}, seed: maphash.MakeSeed()}
	machines, leases, outlooks = noQueues(), leases[:1], map[outlook]uint8{} // so that each finds the same ways
	e.report.Name = e.limits.Name
	began := time.Now()
	err := e.run()
	e.report.States, e.report.Took = len(e.seen), time.Since(began)
	return &e.report, err
}

func (e *explorer[S, A]) run() error {
	first := e.space.first()
	var none A
	e.add(&first, 0, none, 0)
	var out []successor[S, A]
	for len(e.next) > 0 && !e.over {
		level := e.next
		e.next = nil
		number := uint32(len(e.seen) - len(level))
		for i := range level {
			out = e.space.successors(&level[i], out[:0])
			e.report.Edges += len(out)
			e.expand(&level[i], number+uint32(i), out)
			if e.over {
				return nil
			}
		}
		if e.limits.Most > 0 && len(e.seen) > e.limits.Most {
			return fmt.Errorf("%s: %w", e.limits.Name, errMore)
		}
		if len(e.next) > 0 {
			e.report.Depth++
		}
	}
	if e.limits.Progress {
		e.progress()
	}
	return nil
}

// expand adds the states that follow one.
func (e *explorer[S, A]) expand(s *S, number uint32, out []successor[S, A]) {
	watched := e.limits.Progress && e.space.waits(s)
	urgent := watched && e.pressing(s, out)
	ways := 0
	for i := range out {
		x := &out[i]
		to := e.add(&x.state, number, x.action, x.bad)
		if e.over {
			return
		}
		if watched && e.space.orderly(s, x.action, urgent) {
			ways++
			if e.space.waits(&x.state) {
				e.line.edge(number, to)
			}
		}
	}
	if watched {
		e.line.waits(number, ways)
	}
}

// pressing reports whether one of the actions is urgent.
func (e *explorer[S, A]) pressing(s *S, out []successor[S, A]) bool {
	return slices.ContainsFunc(out, func(x successor[S, A]) bool { return e.space.urgent(s, x.action) })
}

// add notes a state, and returns its number.
func (e *explorer[S, A]) add(s *S, parent uint32, by A, bad uint8) uint32 {
	number, fresh := e.seen.put(maphash.Comparable(e.seed, *s))
	if fresh {
		e.parent, e.by = append(e.parent, parent), append(e.by, by)
		e.next = append(e.next, *s)
		bad |= e.space.broken(s)
	}
	for v := range invariants {
		if bad>>v&1 != 0 && e.report.Found[v] == nil {
			e.report.Found[v] = e.space.replay(append(e.way(parent), by))
			e.over = e.over || !slices.Contains(e.limits.Admitted, v)
		}
	}
	return number
}

// way returns the actions that lead to a state.
func (e *explorer[S, A]) way(number uint32) (actions []A) {
	for ; number != 0; number = e.parent[number] {
		actions = append(actions, e.by[number])
	}
	slices.Reverse(actions)
	return actions
}
