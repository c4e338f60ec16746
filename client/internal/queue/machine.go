// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// Machine is the queue of a key. The zero value with Fresh set is empty.
type Machine struct {
	Fresh func(label string) string // the owner string of the next place
	fifo  fifo
	no    uint64 // of the last call
	stand

	// What the last holding began with. A message that tells of it may come late, also when it is
	// over, and must not have it given back as something that nobody worked under.
	began string
	first int64

	now time.Duration
	out []Action
	buf [1]Action // out, where one action is all
}

// Step takes what happened, and returns what is to be done, in this order. The slice is valid until
// the next Step.
func (m *Machine) Step(e Event) []Action {
	if m.now, m.out = e.Now, m.out[:0]; cap(m.out) == 0 {
		m.out = m.buf[:0]
	}
	switch e.Kind {
	case Enter:
		m.enter(e.Waiter)
	case End:
		m.end(e.Waiter)
	case Grant:
		m.granted(e)
	case Yes, No, NoAnswer, Denied:
		if m.calling && e.No == m.no {
			m.answer(e)
		}
	case Timer:
		switch {
		case m.state == Standing:
			m.ask()
		case m.state == Asking:
			m.news = true
		case m.Pauses():
			m.serve(m.token, m.top, true)
		}
	case Release:
		if m.state == Held && e.Owner == m.h.Owner && e.Token == m.h.Token {
			m.release(e.Over)
		}
	case Close:
		m.close()
	}
	if m.state == Absent {
		m.stand = stand{}
	}
	return m.out
}

func (m *Machine) enter(w *Waiter) {
	w.since, w.heard, w.fails = m.no, m.answers, 0
	held := m.state == Held || m.state != Trying && m.answers > 0 && m.now-m.heardAt < memory
	switch {
	case m.state == Absent && w.Hot:
		m.fifo.push(w)
		m.ask()
	case m.state == Absent:
		m.fifo.push(w)
		m.state = Trying
		m.send(Acquire, w)
	case !w.Try:
		m.others = true
		m.fifo.push(w)
	case held && !w.Fresh: // from memory. An outage is not that
		m.fail(w, fcall.ErrBusy)
	default:
		m.fail(w, errOwn)
	}
}

// end unlinks a waiter. One that was served meanwhile declines, one that has failed knows.
func (m *Machine) end(w *Waiter) {
	if w.next == nil {
		return
	}
	first := w == m.fifo.first
	m.fail(w, m.verdict())
	switch {
	case m.state == Held || m.state == Trying && !first:
	case m.state == Trying || !m.fits(m.head()):
		m.ask()
	}
}

// granted is for a message.
func (m *Machine) granted(e Event) {
	switch {
	case e.Owner == m.began && e.Token == m.first: // told twice
	case e.Owner != m.owner || m.state == Trying:
		m.do(Action{Op: Undo, Owner: e.Owner, Token: e.Token})
	case m.state == Asking && e.Token > m.token:
		m.token, m.top = e.Token, e.Top
	case m.state == Standing && m.above < 0:
		m.ask()
	case m.state == Standing && e.Token > m.above:
		m.serve(e.Token, e.Top, m.call.Terms.MinHold > 0 || e.Confirm)
	}
}

func (m *Machine) release(over bool) {
	if w := m.head(); w != nil && *w.Terms == *m.h.Terms && m.h.Token < m.h.Top && !over {
		m.h.Token++
		m.give(w, false)
		return
	}
	m.do(Action{Op: GiveBack, Owner: m.h.Owner, Again: m.h.Again})
	m.h = Action{}
	m.ask()
}

// close ends all waits. What is held is not given back: its work may go on until it sees its context.
func (m *Machine) close() {
	for m.fifo.first != nil {
		m.fail(m.fifo.first, ErrClosed)
	}
	m.ask()
}

// answer is for the call that was under way.
func (m *Machine) answer(e Event) {
	w := m.call.Waiter
	m.doubt = m.doubt || e.Unknown
	if m.calling = false; e.Kind != NoAnswer {
		m.answers, m.heardAt, m.due = m.answers+1, m.now, 0
	}
	if m.state == Trying && e.Kind != Yes {
		m.owes = e.Unknown || e.Spent
	}
	switch {
	case e.Kind == No:
		m.busy(e)
	case e.Kind == NoAnswer:
		m.silent(e.Unknown)
	case e.Kind == Yes && !e.Late:
		if m.state == Confirming {
			e.Top = m.top
		}
		m.serve(e.Token, e.Top, e.Confirm)
		return
	case e.Kind == Denied && w.next != nil:
		m.fail(w, errRefused)
		m.owes = m.owes && (!e.Left || m.doubt)
		m.ask()
	case w.Try:
		m.fail(w, fcall.ErrUnreachable)
		m.ask()
	default:
		m.ask()
	}
}

// busy is for an answer that the lock is somebody else's.
func (m *Machine) busy(e Event) {
	kept := m.token
	if w := m.call.Waiter; w.Try {
		m.fail(w, fcall.ErrBusy)
	}
	switch {
	case e.Spent:
		m.drop()
		if m.state = Standing; m.head() == nil {
			m.state = Absent
		}
	case m.state != Asking: // after Trying; what a renewal asked for was an old one, which nobody saw
		m.ask()
	case kept > e.Token:
		m.above = e.Token
		m.serve(kept, m.top, true)
	default:
		if m.above, m.token, m.state = e.Token, 0, Standing; m.news {
			m.ask()
		}
	}
}

// silent is for a call that had no answer. Who was never answered fails at once, or the second time if
// the outcome is unknown: that of a lost reply is known when the owner asks again. Who was answered
// fails when the silence is longer than its lease.
func (m *Machine) silent(unknown bool) {
	w := m.fifo.first
	for range m.fifo.n {
		next, over := w.next, false
		if w.heard != m.answers {
			over = m.now-m.due > w.Terms.Length
		} else if w.since != m.no {
			w.fails++
			over = !unknown || w.Try || w.fails > 1
		}
		if over {
			m.fail(w, fcall.ErrUnreachable)
		}
		w = next
	}
	if !m.fits(m.head()) || m.state == Asking && m.token != 0 {
		m.ask()
	} else if m.state != Confirming {
		m.state = Standing
	}
}

// serve gives what was granted to the place to the head, after a renewal if confirm, or if the head wants other
// terms than those that were asked for.
func (m *Machine) serve(first, top int64, confirm bool) {
	m.token, m.top = first, top
	switch w := m.head(); {
	case !m.fits(w):
		m.ask()
	case confirm || *w.Terms != *m.call.Terms:
		m.state = Confirming
		m.send(Renew, w)
	default:
		m.h = Action{Op: Serve, Owner: m.owner, Token: first, Top: top, Terms: w.Terms, Again: m.doubt}
		m.began, m.first = m.owner, first
		m.state, m.owner, m.token, m.due = Held, "", 0, 0
		m.give(w, true)
	}
}

// give makes w the holder of h.
func (m *Machine) give(w *Waiter, first bool) {
	m.fifo.remove(w)
	a := m.h
	a.Waiter, a.First = w, first
	m.do(a)
}

// fits reports whether the owner of the place can be w's: these cannot be changed about a place or a grant, and
// the owner string shows the label.
func (m *Machine) fits(w *Waiter) bool {
	t := m.call.Terms
	return w != nil && t != nil && w.Terms.Guard == t.Guard && w.Terms.MinHold == t.MinHold && w.Terms.Label == t.Label
}

// ask asks for the head, with the owner of the place if that fits. With nobody there the queue ends.
func (m *Machine) ask() {
	w := m.head()
	if m.calling {
		m.calling, m.doubt = false, true
		m.do(Action{Op: Abandon, No: m.no})
	}
	if !m.fits(w) {
		m.drop()
	}
	if m.state, m.token = Absent, 0; w != nil {
		m.state = Asking
		m.send(Wait, w)
	}
}

// send makes a call for w, of what was granted if it is a Renew.
func (m *Machine) send(op Op, w *Waiter) {
	if m.owner == "" {
		m.owner, m.doubt, m.above = m.Fresh(w.Terms.Label), false, -1
	}
	if m.due == 0 {
		m.due = m.now
	}
	m.no++
	m.call = Action{Op: op, Waiter: w, Owner: m.owner, Token: m.token, Terms: w.Terms, No: m.no, Run: m.others}
	m.calling, m.owes, m.news = true, true, false
	m.do(m.call)
}

// drop gives up the place.
func (m *Machine) drop() {
	if m.owner != "" && m.owes {
		m.do(Action{Op: Undo, Owner: m.owner, Terms: m.call.Terms, Again: m.doubt})
	}
	m.owner, m.token = "", 0
}

// head is the first waiter whose deadline is not over. Those before it are told that theirs is.
func (m *Machine) head() *Waiter {
	for w := m.fifo.first; w != nil; w = m.fifo.first {
		if w.Until == 0 || m.now < w.Until {
			return w
		}
		m.fail(w, m.verdict())
	}
	return nil
}

func (m *Machine) do(a Action) { m.out = append(m.out, a) }
