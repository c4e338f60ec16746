package queue

import (
	"time"

	"github.com/holdfast-go/holdfast/client/internal/lease"
)

const (
	// For so long after an answer a try is refused from memory: as long as waiters of the line ask once
	// a second, and no longer than an outage may go unseen.
	memory = time.Second
	// Where more than so many wait, verdicts are looked for once a second only.
	crowd        = 1000
	crowdedEvery = time.Second
)

// Machine is the queue of a key. The zero value with Fresh set is empty.
type Machine struct {
	Fresh func(label string) string // the owner string of the next place
	Asks  bool                      // the owner is of the caller's choice: a Grant is a reason to ask, no more

	fifo   fifo
	owner  string // of the place; "": the next call has a fresh one
	no     uint64 // of the last call
	closed bool
	stand  // all that ends when nobody is there
	mut    mutation

	now time.Duration
	out []Action
	buf [1]Action // out, where one action is all
}

type stand struct {
	state State
	h     tenure

	bound  bound        // that of owner
	terms  *lease.Terms // of its last call
	owes   bool         // the server may know the owner
	doubt  bool         // a call with it has no answer, and may run late
	placed bool         // a wait was answered: the server's clock is known
	above  int64        // grants up to this one are void
	token  int64        // granted, or kept for the answer to come
	top    int64

	asker   *Waiter
	calling bool // call no is under way
	timer   bool
	others  bool   // somebody stood behind another one
	answers uint64 // to calls
	heardAt time.Duration
	unheard bool // an answer is due
	askedAt time.Duration
	judged  time.Duration
}

// tenure is what a holder of this process has.
type tenure struct {
	owner             string
	first, token, top int64
	terms             *lease.Terms
	doubt             bool
}

// State is where the queue is.
func (m *Machine) State() State { return m.state }

// Waiting is how many wait.
func (m *Machine) Waiting() int { return m.fifo.n }

// wants reports whether the answer to a call is waited for.
func (m *Machine) wants(a Action) bool { return m.calling && a.No == m.no }

// First is the waiter whose turn is next; nil: nobody waits.
func (m *Machine) First() *Waiter { return m.fifo.first }

// Step takes what happened, and returns what is to be done, in this order. The slice is valid until
// the next Step.
func (m *Machine) Step(e Event) []Action {
	if m.now, m.out = e.Now, m.out[:0]; cap(m.out) == 0 {
		m.out = m.buf[:0]
	}
	ours := m.state == Held && e.Owner == m.h.owner
	switch e.Kind {
	case Enter, Try:
		m.enter(e.Waiter, e.Kind == Try)
	case End:
		m.end(e.Waiter)
	case Grant:
		m.granted(e)
	case Yes, No, NoAnswer, Denied:
		if m.calling && e.No == m.no {
			m.calling = false
			m.answer(e)
		}
	case Timer:
		m.fired()
	case Release, Decline:
		if ours && e.Token == m.h.token || m.mut&replaces != 0 && m.state == Held {
			m.release(e)
		}
	case Lost:
		if ours {
			m.lose()
		}
	case Close:
		m.close()
	}
	if m.state == Absent {
		m.stand = stand{}
	}
	return m.out
}

// Begin is Enter or Try from Absent, and returns the one action: w makes the first call itself. With
// Had and Freed it is the whole way of a lock that nobody contends, without a list of actions.
func (m *Machine) Begin(w *Waiter, try bool, now time.Duration) Action {
	w.Try, w.since, w.heard, w.fails = try, m.no, m.answers, 0
	m.now = now
	m.fifo.push(w)
	m.fresh(w)
	m.state = Trying
	return m.form(Acquire, w, 0)
}

// Had is Yes for that call, in time, and reports whether the lock is the waiter's. If not, somebody or
// something came between, and nothing has changed: take the answer to Step.
func (m *Machine) Had(now time.Duration, token, top int64) bool {
	w := m.fifo.first
	if m.state != Trying || m.fifo.n != 1 || w.over(now) {
		return false
	}
	m.calling, m.answers, m.heardAt, m.unheard = false, m.answers+1, now, false
	m.fifo.remove(w)
	m.hold(w, token, top)
	return true
}

// Freed is Release where nobody waits, and reports whether that is so: then nobody is here.
func (m *Machine) Freed(owner string, token int64) bool {
	if m.state != Held || m.h.owner != owner || m.h.token != token || m.fifo.n > 0 {
		return false
	}
	m.stand = stand{}
	return true
}

func (m *Machine) enter(w *Waiter, try bool) {
	w.Try, w.since, w.heard, w.fails = try, m.no, m.answers, 0
	switch {
	case m.closed:
		m.do(Action{Op: Fail, Waiter: w, Err: Closed})
	case m.state == Absent && w.Hot && !try:
		m.fifo.push(w)
		m.ask()
	case m.state == Absent:
		m.do(m.Begin(w, try, m.now))
	case !try:
		m.others = true
		m.fifo.push(w)
	case !w.Fresh && m.held():
		m.do(Action{Op: Fail, Waiter: w, Err: Busy})
	default:
		m.do(Action{Op: Own, Waiter: w})
	}
}

// held reports whether a try can be told from memory that somebody has the lock. An outage is not
// that.
func (m *Machine) held() bool {
	return m.state == Held || m.mut&busyInOutage != 0 ||
		m.state != Trying && m.answers > 0 && m.now-m.heardAt < memory
}

// end unlinks a waiter. One that was served meanwhile declines, one that has failed knows.
func (m *Machine) end(w *Waiter) {
	if !w.queued {
		return
	}
	first := w == m.fifo.first
	m.fail(w, m.verdict())
	switch {
	case m.state == Held || m.state == Trying && !first:
	case m.mut&dropsPlace != 0 && first:
		m.drop()
		m.ask()
	case m.state == Trying:
		m.ask()
	default:
		m.reseat()
	}
}

// verdict is why a wait ends whose time is over: it may be the server's doing.
func (m *Machine) verdict() Err {
	if m.unheard && m.now-m.askedAt >= silence {
		return Unreachable
	}
	return Timeout
}

// granted is for a message.
func (m *Machine) granted(e Event) {
	switch {
	case m.Asks:
		if m.state == Standing {
			m.ask()
		} else if m.state == Asking {
			m.token = e.Token
		}
	case m.state == Held && e.Owner == m.h.owner && e.Token == m.h.first: // told twice
	case e.Owner != m.owner || e.Owner == "" || m.state == Trying:
		m.do(Action{Op: Undo, Owner: e.Owner, Token: e.Token})
	case m.state == Asking:
		if e.Token > m.token && m.mut&forgetsEarly == 0 {
			m.token, m.top = e.Token, e.Top
		}
	case m.state == Standing && !m.placed:
		m.ask()
	case m.state == Standing && e.Token > m.above:
		m.serve(e.Token, e.Top, m.bound.minHold > 0 || e.Late)
	}
}

func (m *Machine) fired() {
	switch {
	case m.state == Standing:
		m.ask()
	case m.state == Confirming && !m.calling:
		m.stop()
		m.renew()
	}
}

func (m *Machine) release(e Event) {
	w := m.head()
	for m.mut&passesBeyond != 0 && w != nil && w.next != nil && *w.Terms != *m.h.terms {
		w = w.next
	}
	if w != nil && *w.Terms == *m.h.terms && m.h.token < m.h.top && !e.Over {
		m.h.token++
		m.give(w, false)
		return
	}
	last := m.h.token
	switch {
	case e.Kind == Decline && last == m.h.first:
		last = 0
	case e.Kind == Decline:
		last--
	}
	m.do(Action{Op: GiveBack, Owner: m.h.owner, Token: last, Terms: m.h.terms, Again: m.h.doubt})
	if m.h = (tenure{}); m.mut&noWaitAfter != 0 {
		m.state = Absent
		return
	}
	m.ask()
}

func (m *Machine) lose() {
	if m.h.doubt {
		m.do(Action{Op: Undo, Owner: m.h.owner, Terms: m.h.terms, Again: true})
	}
	m.h = tenure{}
	m.ask()
}

// close ends all waits. What is held is not given back: its work may go on until it sees its context.
func (m *Machine) close() {
	m.closed = true
	for m.fifo.first != nil {
		m.fail(m.fifo.first, Closed)
	}
	m.h = tenure{}
	m.ask()
}
