// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

func (n note) event() Event {
	return Event{Kind: n.kind, Late: n.late, Confirm: n.confirm || n.kind == Grant && n.late, Spent: n.spent, Unknown: n.unknown, No: n.no,
		Owner: names[n.owner], Token: int64(n.token), Top: int64(n.top)}
}

// event steps the machine of p, and does what it says.
func (w *world) event(p int, e Event) {
	q, other := &w.q[p], 0
	before, place := q.state, q.owner
	if e.Kind == Release || before == Held {
		place = q.h.Owner
	}
	if e.Kind == Enter && e.Waiter.Try || e.Owner != place && (e.Kind == Grant || e.Kind == Release) {
		other = 1
	}
	w.c.cells[before][e.Kind][other] = true
	e.Now = seconds(w.now)
	q.Fresh = func(string) string {
		w.made[p]++
		return names[oid(p)*1000+w.made[p]]
	}
	actions := q.Step(e)
	for _, a := range actions {
		w.do(p, before, e, a)
	}
	if (table[e.Kind][before] == "-" || other == 1 && e.Kind == Release) && (len(actions) > 0 || q.state != before) {
		w.fail("event %d in state %d is to change nothing", e.Kind, before)
	}
	q.out, q.buf, q.Fresh = nil, [1]Action{}, nil
	n := 0
	for x := q.fifo.first; x != nil && n < 10 && (n == 0 || x != q.fifo.first); x = x.next {
		n++
	}
	if q.state == Absent && n > 0 {
		w.fail("waiters in an absent queue")
	}
	if n != q.fifo.n {
		w.fail("%d of %d waiters in the list", n, q.fifo.n)
	}
}

func (w *world) do(p int, before State, e Event, a Action) {
	c := call{op: a.Op, owner: idOf(a.Owner), token: uint16(a.Token), no: a.No}
	id := uint8(0)
	if a.Waiter != nil {
		id = w.index(a.Waiter)
		c.guard, c.min = boundOf(a.Waiter)
	}
	switch a.Op {
	case Acquire, Wait, Renew:
		if w.over(id) {
			w.fail("asked for a waiter whose deadline is over")
		}
		if old := w.cur[p]; a.Op != Renew {
			switch {
			case c.owner <= w.spent[p]:
				w.fail("owner used again")
			case old != c.owner && old > w.spent[p] && (w.holder == old || w.standing(old) >= 0 || w.pending(old)):
				w.fail("a place was left behind")
			}
			w.cur[p] = c.owner
		}
		w.lane[p].push(c)
	case GiveBack, Undo:
		if a.Again {
			w.again.push(c.owner)
		}
		w.spent[p] = max(w.spent[p], c.owner)
		if a.Op == Undo && a.Owner == w.q[p].began && a.Token == w.q[p].first {
			w.fail("given up as if nobody had worked under it")
		}
		i, f := w.standing(c.owner), w.q[p].fifo.first
		if i >= 0 && c.owner == w.cur[p] && f != nil && w.line.v[i] == spotOf(c.owner, f) {
			w.fail("the place was given up while others wait")
		}
		w.lane[p].push(c)
	case Abandon:
		for i := range w.lane[p].all() {
			if w.lane[p].v[i].no == a.No {
				w.lane[p].v[i].no = 0
			}
		}
		if i := slices.IndexFunc(w.rep[p].all(), func(r note) bool { return r.no == a.No }); i >= 0 {
			w.rep[p].cut(uint8(i))
		}
	case Serve, Fail:
		if w.w[id] != waiting {
			w.fail("told twice")
		}
		w.w[id] = done
		switch {
		case a.Op == Serve:
			w.tell(p, id, c.owner, c.token)
		case a.Err == errOwn:
		case a.Err == fcall.ErrBusy && e.Kind == Enter && e.Waiter.Fresh:
			w.fail("a fresh answer from memory")
		case a.Err == fcall.ErrBusy && before != Held && e.Kind != No && w.now-w.heard[p] >= 1:
			w.fail("busy in an outage")
		case a.Err == fcall.ErrUnreachable && !w.used(sLoseCall) && !w.used(sLoseReply) && !w.used(sLate) && !w.used(sPause) && !w.used(sTick),
			a.Err == ErrClosed && !w.used(sClose),
			a.Err == errRefused && !w.used(sRefuse),
			a.Err == ErrTimeout && e.Kind != End && !w.over(id):
			w.fail("error %v without a reason", a.Err)
		}
	}
}

func spotOf(owner oid, x *Waiter) spot {
	guard, min := boundOf(x)
	return spot{owner, guard, min}
}

func (w *world) pending(o oid) bool {
	return slices.ContainsFunc(w.lane[procOf(o)].all(), func(c call) bool { return c.owner == o && (c.op == Acquire || c.op == Wait) })
}

func (w *world) tell(p int, id uint8, owner oid, token uint16) {
	guard, min := boundOf(&w.ws[id])
	switch {
	case w.holder != owner || token < w.fence || token > w.top:
		w.fail("told of what the server does not know")
	case token <= w.told:
		w.fail("tokens do not grow")
	case guard && !w.safe:
		w.fail("a guarded waiter has an unguarded grant")
	case min != w.min || min && !w.sure:
		w.fail("minimum asked %v, granted %v, confirmed %v", min, w.min, w.sure)
	}
	for i, c := range w.c.roles[:id] {
		if int(c.proc) == p && w.w[i] == waiting {
			w.fail("passed over the head")
		}
	}
	w.told, w.w[id], w.ending, w.spent[p] = token, holds, false, max(w.spent[p], owner)
	w.recs.push(worker{w: id, proc: uint8(p), live: true, owner: owner, token: token})
}

func (w *world) check() {
	n := 0
	for i := int(w.again.n) - 1; i >= 0; i-- {
		if o := w.again.v[i]; w.late.owner != o && !w.pending(o) {
			w.again.cut(uint8(i))
		}
	}
	for _, h := range w.recs.all() {
		if h.knows(h.owner) {
			if n++; w.holder != h.owner || n > 1 {
				w.fail("a live holder without the lock, or two")
			}
		}
	}
}

// done reports whether all is over: nobody waits or works, and the server has nothing left.
func (w *world) done() bool {
	n := w.line.n
	for p := range w.q {
		n += uint8(w.q[p].state) + w.lane[p].n + w.rep[p].n + w.msg[p].n
	}
	return n == 0 && w.recs.n == 0 && w.holder == 0 && w.late.owner == 0 && w.doubled.owner == 0 && !slices.Contains(w.w[:], waiting)
}
