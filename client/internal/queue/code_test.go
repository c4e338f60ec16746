// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"hash/maphash"
	"slices"
	"time"
)

// Hashing: owners by order of appearance, tokens by rank.

type coder struct {
	b      []byte
	owners []oid
	at     []int
	tokens []uint16
}

func (e *coder) n(v ...uint8) { e.b = append(e.b, v...) }
func (e *coder) f(v ...bool) {
	x := uint8(0)
	for _, f := range v {
		if x <<= 1; f {
			x |= 1
		}
	}
	e.n(x)
}
func (e *coder) t(ts ...uint16) {
	for _, t := range ts {
		e.at, e.tokens = append(e.at, len(e.b)), append(e.tokens, t)
		e.n(0)
	}
}
func (e *coder) o(o oid) {
	i := slices.Index(e.owners, o)
	if i < 0 {
		i, e.owners = len(e.owners), append(e.owners, o)
	}
	e.n(uint8(i), uint8(procOf(o)))
}
func (e *coder) event(a note) {
	e.n(uint8(a.kind))
	e.f(a.late, a.unknown, a.confirm, a.spent)
	e.o(a.owner)
	e.t(a.token, a.top)
}
func (e *coder) call(c call) {
	e.n(uint8(c.op))
	e.f(c.guard, c.min, c.no != 0)
	e.o(c.owner)
	e.t(c.token)
}
func (e *coder) ago(now, t tick) { e.n(uint8(min(now-t, 3))) }
func (e *coder) queue(w *world, q *Machine) {
	asker := uint8(6)
	if q.calling {
		asker = w.index(q.call.Waiter)
	}
	e.n(uint8(q.state), uint8(q.fifo.n), asker)
	x := q.fifo.first
	for range q.fifo.n {
		e.n(w.index(x), x.fails)
		e.f(x.heard != q.answers, x.since != q.no)
		x = x.next
	}
	e.f(q.owes, q.above >= 0, q.calling, q.answers > 0, q.due != 0, q.doubt, q.h.Again, q.news)
	t := q.call.Terms
	e.f(t != nil && t.Guard > 0, t != nil && t.MinHold > 0)
	e.ago(w.now, tick(q.heardAt/time.Second))
	e.ago(w.now, tick(q.due/time.Second))
	e.o(idOf(q.owner))
	e.o(idOf(q.h.Owner))
	e.o(idOf(q.began))
	for _, t := range [...]int64{q.first, q.h.Token, q.h.Top, max(0, q.above), q.token, q.top} {
		e.t(uint16(t))
	}
}

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func (e *coder) hash(w *world) [2]uint64 {
	e.b, e.owners, e.at, e.tokens = e.b[:0], append(e.owners[:0], 0), e.at[:0], e.tokens[:0]
	for p := range w.q {
		e.queue(w, &w.q[p])
		e.n(w.lane[p].n, w.rep[p].n, w.msg[p].n)
		for _, c := range w.lane[p].all() {
			e.call(c)
		}
		for _, l := range [][]note{w.rep[p].all(), w.msg[p].all()} {
			for _, a := range l {
				e.event(a)
			}
		}
		e.f(w.dead[p], w.closed[p], w.paused[p], w.cur[p] > w.spent[p])
		e.ago(w.now, w.heard[p])
		e.o(w.cur[p])
	}
	e.call(w.late)
	e.event(w.doubled)
	e.o(w.holder)
	e.t(w.fence, w.top, w.told)
	e.f(w.guard, w.min, w.safe, w.sure, w.young, w.ending)
	e.n(w.line.n, w.recs.n, w.again.n, uint8(w.now))
	for _, o := range w.again.all() {
		e.o(o)
	}
	for _, l := range w.line.all() {
		e.o(l.owner)
		e.f(l.guard, l.min)
	}
	for _, h := range w.recs.all() {
		e.n(h.w)
		e.f(h.live, h.stale)
		e.o(h.owner)
		e.t(h.token)
	}
	e.n(append(w.w[:], w.budget[sEnd:]...)...)
	sorted := append(slices.Clone(e.tokens), 0)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	for i, at := range e.at {
		r, _ := slices.BinarySearch(sorted, e.tokens[i])
		e.b[at] = uint8(r)
	}
	return [2]uint64{maphash.Bytes(seeds[0], e.b), maphash.Bytes(seeds[1], e.b)}
}
