// SPDX-License-Identifier: Apache-2.0

package model

import (
	"hash/maphash"
	"slices"
)

// Progress: from each reachable state in which client 0 waits, when nothing fails any more, each
// way leads to the lock in a bounded number of moves. Nothing fails means: calls, replies and
// messages arrive before the next tick, holders give back what they hold, and nobody dies. Other
// clients may begin new acquisitions meanwhile, one in each tick, so a way that goes on for ever
// without the lock is one on which they overtake the waiter.

// progress is the graph of the states in which client 0 waits, by the orderly moves.
type progress struct {
	from, to []uint32
	nodes    []uint32
	stuck    []uint32 // no move is possible, not even a tick
}

func (p *progress) edge(from, to uint32) { p.from, p.to = append(p.from, from), append(p.to, to) }

func (p *progress) waits(number uint32, ways int) {
	p.nodes = append(p.nodes, number)
	if ways == 0 {
		p.stuck = append(p.stuck, number)
	}
}

// endless returns the first state from which a way leads on for ever, if there is one, and which
// states are on such ways. It takes away states that no way leads on from, until only those on
// cycles, and before them, are left.
func (p *progress) endless(states int) (number uint32, left []uint32, found bool) {
	if len(p.stuck) > 0 {
		return p.stuck[0], nil, true
	}
	out, at := make([]uint32, states), make([]uint32, states+1)
	for i := range p.from {
		out[p.from[i]]++
		at[p.to[i]+1]++
	}
	for i := range states {
		at[i+1] += at[i]
	}
	before, fill := make([]uint32, len(p.to)), append([]uint32(nil), at[:states]...)
	for i, to := range p.to {
		before[fill[to]] = p.from[i]
		fill[to]++
	}
	var done []uint32
	for _, n := range p.nodes {
		if out[n] == 0 {
			done = append(done, n)
		}
	}
	for len(done) > 0 {
		n := done[len(done)-1]
		done = done[:len(done)-1]
		for _, f := range before[at[n]:at[n+1]] {
			if out[f]--; out[f] == 0 {
				done = append(done, f)
			}
		}
	}
	for _, n := range p.nodes {
		if out[n] > 0 {
			return n, out, true
		}
	}
	return 0, nil, false
}

// progress looks for a way that never leads to the lock, and makes a trace of it: the way to a
// cycle and once around it.
func (e *explorer) progress() {
	n, left, found := e.line.endless(len(e.seen))
	if !found {
		return
	}
	actions := e.way(n)
	state := e.at(actions)
	back := len(actions)
	for visited := map[uint32]int{n: back}; left != nil; {
		var to uint32
		for _, x := range orderly(e.cfg.successors(&state, nil)) {
			to = e.seen[maphash.Comparable(e.seed, x.state)]
			if left[to] > 0 && x.state.Clients[0].Waits() {
				state, actions = x.state, append(actions, x.action)
				break
			}
		}
		if at, known := visited[to]; known {
			back = at
			break
		}
		visited[to] = len(actions)
	}
	t := e.cfg.replay(actions)
	t.Text = slices.Insert(t.Text, back, "from here on for ever, and client "+t.watched+" waits:")
	e.report.Found[Progress] = t
}

// at is the state that actions lead to.
func (e *explorer) at(actions []Action) State {
	state := e.cfg.first()
	for _, a := range actions {
		for _, x := range e.cfg.successors(&state, nil) {
			if x.action == a {
				state = x.state
				break
			}
		}
	}
	return state
}

// orderly keeps the moves that happen when nothing fails any more.
func orderly(all []successor) (out []successor) {
	urgent := pressing(all)
	for _, x := range all {
		if x.action.Move.orderly(urgent) {
			out = append(out, x)
		}
	}
	return out
}
