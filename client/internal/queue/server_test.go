// SPDX-License-Identifier: Apache-2.0

package queue

// The model of the server.

func (w *world) exec(p int, c call, late bool) {
	if w.holder == 0 {
		w.passOn()
	}
	mine, yes := w.holder == c.owner, false
	switch i := w.standing(c.owner); {
	case c.op == GiveBack && mine:
		w.passOn()
	case c.op == Undo:
		if i >= 0 {
			w.line.cut(uint8(i))
		}
		if mine && (c.token == 0 || c.token == w.fence) {
			w.passOn()
		}
	case c.op == Renew && mine && c.token == w.fence:
		yes, w.sure, w.ending = true, true, false
	case c.op != Acquire && c.op != Wait:
	case mine:
		yes, w.sure, w.ending, w.guard = true, true, w.ending && late, w.guard || c.guard
	case w.holder == 0 && w.line.n == 0:
		if yes = !c.guard || !w.young; yes {
			w.give(spot{c.owner, c.guard, c.min})
			w.guard, w.sure, w.ending = c.guard, true, false
		}
	case c.op == Wait && w.c.votes:
	case c.op == Wait && i < 0:
		w.guard = w.guard || c.guard
		w.line.push(spot{c.owner, c.guard, c.min})
	case c.op == Wait && w.line.v[i] != spot{c.owner, c.guard, c.min}:
		w.fail("the terms of a place changed")
	}
	if yes {
		w.answer(p, c, note{kind: Yes, token: w.fence, top: w.top, confirm: w.c.acks && c.op == Wait})
	} else {
		w.answer(p, c, note{kind: No, token: w.fence, spent: w.c.votes && c.op != Renew})
	}
}

func (w *world) answer(p int, c call, e note) {
	if e.owner, e.no = c.owner, c.no; c.no != 0 && !w.dead[p] {
		w.rep[p].push(e)
	}
}

func (w *world) give(l spot) {
	w.holder, w.fence, w.top = l.owner, w.next, w.next+1
	if l.min {
		w.top = w.fence
	}
	w.next, w.min, w.safe, w.sure, w.ending = w.top+1, l.min, !w.young, false, false
}

func (w *world) passOn() {
	w.holder, w.ending = 0, false
	for w.line.n > 0 && !(w.guard && w.young) {
		l := w.line.cut(0)
		if p := procOf(l.owner); !w.closed[p] {
			if w.give(l); !w.dead[p] {
				w.msg[p].push(note{kind: Grant, owner: l.owner, token: w.fence, top: w.top})
			}
			return
		}
	}
	w.guard = w.guard && w.line.n > 0
}

// expire ends the lease. What is on its way to a paused process comes too late then.
func (w *world) expire() {
	for p := range w.q {
		for _, l := range []*list[note]{&w.rep[p], &w.msg[p]} {
			for i := range l.all() {
				e := &l.v[i]
				e.late = e.late || e.owner == w.holder && (e.kind == Yes || e.kind == Grant)
			}
		}
	}
	w.doubled.late = w.doubled.late || w.doubled.owner == w.holder
	for i := range w.recs.all() {
		if h := &w.recs.v[i]; h.knows(w.holder) {
			if h.stale = true; !w.paused[h.proc] {
				w.fail("the model ends a lease that is renewed")
			}
		}
	}
	w.holder, w.ending = 0, false
}
