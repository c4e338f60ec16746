// SPDX-License-Identifier: Apache-2.0

package queue

import "slices"

// steps lists what can happen next.
func (w *world) steps(s []step) []step {
	add := func(ok bool, op uint8, p, i int) {
		if x := (step{op, uint8(p), uint8(i)}); ok && (op < sEnd || w.budget[op] > 0 || w.forced(x)) {
			s = append(s, x)
		}
	}
	for p := range w.q {
		if w.lane[p].n > 0 {
			c := w.lane[p].v[0]
			add(true, sExec, p, 0)
			add(c.no != 0, sLoseCall, p, 0)
			add(c.no != 0, sRefuse, p, 0)
			add((c.op == Acquire || c.op == Wait) && w.late.owner == 0, sLate, p, 0)
		}
		if w.dead[p] {
			continue
		}
		if w.paused[p] {
			add(true, sWake, p, 0)
			continue
		}
		entered := w.closed[p]
		for i, c := range w.c.roles {
			if int(c.proc) == p {
				add(w.w[i] == away && !entered, sEnter, p, i)
				add(w.w[i] == waiting, sEnd, p, i)
				entered = entered || w.w[i] == away
			}
		}
		live := false
		for i, h := range w.recs.all() {
			if int(h.proc) == p {
				live = live || h.live
				add(true, sRelease, p, i)
				add(h.live, sLost, p, i)
			}
		}
		add(w.q[p].Pauses(), sTimer, p, 0)
		add(w.rep[p].n > 0, sReply, p, 0)
		add(w.rep[p].n > 0 && w.rep[p].v[0].kind != NoAnswer, sLoseReply, p, 0)
		add(w.msg[p].n > 0, sMessage, p, 0)
		add(w.msg[p].n > 0, sLoseMessage, p, 0)
		add(w.msg[p].n > 0 && w.doubled.owner == 0, sDouble, p, 0)
		add(true, sKey, p, 0)
		add(live || w.rep[p].n+w.msg[p].n > 0, sPause, p, 0)
		add(w.q[p].state != Absent, sDie, p, 0)
		add(!w.closed[p], sClose, p, 0)
	}
	h := procOf(w.holder)
	add(w.late.owner != 0, sExecLate, procOf(w.late.owner), 0)
	add(w.doubled.owner != 0, sDoubled, procOf(w.doubled.owner), 0)
	add(w.holder != 0 && (w.ending || w.dead[h] || w.closed[h] || w.paused[h]), sExpire, h, 0)
	add(w.young, sOld, 0, 0)
	add(w.holder == 0 && w.line.n > 0 && !slices.ContainsFunc(w.line.all(), func(l spot) bool { return !w.dead[procOf(l.owner)] }), sGone, 0, 0)
	add(true, sTick, 0, 0)
	return s
}

func (w *world) apply(s step) {
	defer func() {
		if r := recover(); r != nil {
			w.fail("panic: %v", r)
		}
	}()
	if s.op >= sEnd && !w.forced(s) {
		w.budget[s.op]--
	}
	p := int(s.p)
	switch s.op {
	case sEnter:
		c := w.c.roles[s.i]
		w.w[s.i] = waiting
		w.ws[s.i] = Waiter{Until: seconds(c.until), Request: Request{Terms: c.terms, Try: c.try, Fresh: c.fresh}}
		w.event(p, Event{Kind: Enter, Waiter: &w.ws[s.i]})
	case sEnd:
		w.event(p, Event{Kind: End, Waiter: &w.ws[s.i]})
	case sRelease:
		h := w.recs.cut(s.i)
		w.w[h.w] = done
		w.event(p, Event{Kind: Release, Owner: names[h.owner], Token: int64(h.token), Over: h.live && h.stale}) // it looks at its clock
	case sLost:
		h := &w.recs.v[s.i]
		w.ending = w.ending || !h.stale && w.holder == h.owner
		h.live = false
		w.event(p, Event{Kind: Release, Owner: names[h.owner], Token: int64(h.token), Over: true})
	case sReply:
		e := w.rep[p].cut(0)
		if e.kind != NoAnswer {
			w.heard[p] = w.now
		}
		w.event(p, e.event())
	case sMessage:
		w.event(p, w.msg[p].cut(0).event())
	case sDoubled:
		e := w.doubled
		if w.doubled = (note{}); !w.dead[p] && !w.closed[p] {
			w.event(p, e.event())
		}
	case sTimer, sKey:
		w.event(p, Event{Kind: Timer})
	case sWake, sPause:
		w.paused[p] = s.op == sPause
	case sExec:
		w.exec(p, w.lane[p].cut(0), false)
	case sExecLate:
		c := w.late
		w.late = call{}
		w.exec(p, c, true)
		if slices.Contains(w.again.all(), c.owner) && !w.dead[p] {
			w.lane[p].push(call{op: Undo, owner: c.owner})
		}
	case sExpire:
		w.expire()
	case sOld:
		w.young = false
	case sGone:
		w.line, w.guard = list[spot]{}, false
	case sTick:
		w.now++
		for i := range w.c.roles {
			if w.w[i] == away && w.over(uint8(i)) {
				w.w[i] = done
			}
		}
	case sLoseCall, sLate:
		c := w.lane[p].cut(0)
		w.answer(p, c, note{kind: NoAnswer, unknown: true})
		if c.no = 0; s.op == sLate {
			w.late = c
		}
	case sRefuse:
		w.answer(p, w.lane[p].cut(0), note{kind: Denied})
	case sLoseReply:
		e := &w.rep[p].v[0]
		*e = note{kind: NoAnswer, unknown: true, owner: e.owner, no: e.no}
	case sLoseMessage:
		o := w.msg[p].cut(0).owner
		w.ending = w.ending || o == w.holder && !slices.ContainsFunc(w.recs.all(), func(h worker) bool { return h.knows(o) })
	case sDouble:
		w.doubled = w.msg[p].v[0]
	case sDie, sClose:
		w.stop(p, s.op)
	}
	w.check()
}

func (w *world) stop(p int, op uint8) {
	for i, c := range w.c.roles {
		if int(c.proc) == p && (w.w[i] == away || op == sDie) {
			w.w[i] = done
		}
	}
	for i := int(w.recs.n) - 1; i >= 0; i-- {
		if h := &w.recs.v[i]; int(h.proc) == p {
			h.live = false
			if op == sDie {
				w.recs.cut(uint8(i))
			}
		}
	}
	switch op {
	case sDie:
		w.dead[p] = true
		w.rep[p], w.msg[p], w.q[p] = list[note]{}, list[note]{}, Machine{}
	case sClose:
		w.closed[p] = true
		w.event(p, Event{Kind: Close})
		w.msg[p] = list[note]{}
	}
}
