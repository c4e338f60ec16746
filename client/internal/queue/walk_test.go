// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"slices"
	"strings"
)

// explore walks through all states of c. Then it looks whether from each an end can be reached by steps
// that must happen, and from those without a fault so far by such steps and no timer.
func explore(c *scope, limit int) (states int, bad string) {
	type node struct {
		parent int32
		via    step
	}
	var nodes []node
	var plain, ended []bool
	var edges []int32 // to << 1 | slow
	var offsets []int
	seen, code := map[[2]uint64]int32{}, &coder{}
	visit := func(w *world, parent int32, via step) (int32, bool) {
		h := code.hash(w)
		if id, ok := seen[h]; ok {
			return id, false
		}
		id := int32(len(nodes))
		seen[h], nodes, ended = id, append(nodes, node{parent, via}), append(ended, w.done())
		plain = append(plain, !c.young && !c.votes && !slices.ContainsFunc([]uint8{sClose, sLoseCall, sLoseReply, sLoseMessage, sDouble, sLate, sLost,
			sPause, sDie, sRefuse}, w.used))
		return id, true
	}
	trace := func(id int32, path []step, why string) string {
		for ; id > 0; id = nodes[id].parent {
			path = append([]step{nodes[id].via}, path...)
		}
		return c.name + ": " + why + "\n" + replay(c, path)
	}
	type item struct {
		w  *world
		id int32
	}
	first := begin(c)
	visit(first, 0, step{})
	todo, n, steps := []item{{first, 0}}, &world{}, []step{}
	for k := 0; k < len(todo) && len(nodes) < limit; k++ {
		w := todo[k].w
		todo[k].w = nil
		offsets = append(offsets, len(edges))
		steps = w.steps(steps[:0])
		for _, s := range steps {
			w.copyTo(n).apply(s)
			if n.bad != "" {
				return len(nodes), trace(todo[k].id, []step{s}, n.bad)
			}
			id, fresh := visit(n, todo[k].id, s)
			if fresh {
				todo = append(todo, item{n.copyTo(&world{}), id})
			}
			if w.fair(s) {
				edge := id << 1
				if s.slow() {
					edge++
				}
				edges = append(edges, edge)
			}
		}
	}
	if len(nodes) >= limit {
		return len(nodes), c.name + ": more states than the limit"
	}
	offsets = append(offsets, len(edges))
	for _, slow := range []bool{true, false} {
		for id, good := range backwards(offsets, edges, ended, slow) {
			if !good && slow {
				return len(nodes), trace(int32(id), nil, "stuck")
			} else if !good && plain[id] {
				return len(nodes), trace(int32(id), nil, "without a fault, only a timer helps")
			}
		}
	}
	return len(nodes), ""
}

// backwards says from which states an end can be reached.
func backwards(offsets []int, edges []int32, ended []bool, slow bool) []bool {
	n := len(ended)
	at := make([]int, n+1)
	for _, e := range edges {
		at[e>>1]++
	}
	for i := range n {
		at[i+1] += at[i]
	}
	from := make([]int32, len(edges))
	for i := range n {
		for _, e := range edges[offsets[i]:offsets[i+1]] {
			at[e>>1]--
			from[at[e>>1]] = int32(i)<<1 | e&1
		}
	}
	good := slices.Clone(ended)
	var stack []int
	for i, g := range good {
		if g {
			stack = append(stack, i)
		}
	}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, e := range from[at[i]:at[i+1]] {
			if (slow || e&1 == 0) && !good[e>>1] {
				good[e>>1] = true
				stack = append(stack, int(e>>1))
			}
		}
	}
	return good
}

func replay(c *scope, path []step) string {
	var b strings.Builder
	w := begin(c)
	for _, s := range path {
		w.apply(s)
		fmt.Fprintf(&b, "  %-12s p%d %d: states %v %v, owners %d %d, holder %d fence %d line %v, lanes %v %v\n", stepNames[s.op], s.p, s.i,
			w.q[0].state, w.q[1].state, idOf(w.q[0].owner), idOf(w.q[1].owner), w.holder, w.fence, w.line.all(), w.lane[0].all(), w.lane[1].all())
	}
	return b.String()
}
