package queue

// answer is for the call that was under way.
func (m *Machine) answer(e Event) {
	if e.Kind != NoAnswer {
		m.answers, m.heardAt, m.unheard = m.answers+1, m.now, false
	}
	switch e.Kind {
	case Yes:
		if !e.Late {
			m.serve(e.Token, e.Top, e.Confirm)
			return
		}
		if w := m.fifo.first; w.Try {
			m.fail(w, Unreachable)
		}
		m.ask()
	case No:
		m.busy(e)
	case NoAnswer:
		m.silent(e.Unknown)
	case Denied:
		if m.asker.queued {
			m.fail(m.asker, Refused)
		}
		m.owes = m.owes && m.state != Trying
		m.ask()
	}
}

// busy is for an answer that the lock is somebody else's.
func (m *Machine) busy(e Event) {
	kept, asking := m.token, m.state == Asking
	if w := m.fifo.first; m.state == Trying {
		m.owes = e.Spent
		if w.Try {
			m.fail(w, Busy)
		}
	}
	switch {
	case e.Spent:
		m.drop()
		if m.state = Absent; m.head() != nil {
			m.state = Standing
			m.start(false)
		}
	case !asking, m.Asks && kept != 0: // after Trying; what a renewal asked for was an old one, which nobody saw
		m.ask()
	case kept > e.Token:
		m.placed, m.above = true, e.Token
		m.serve(kept, m.top, true)
	default:
		m.placed, m.above, m.token = true, e.Token, 0
		m.state = Standing
		m.start(false)
	}
}

// silent is for a call that had no answer.
func (m *Machine) silent(unknown bool) {
	m.doubt = m.doubt || unknown
	m.owes = m.owes && (unknown || m.state != Trying)
	m.verdicts(unknown)
	if m.mut&freshAfterFail != 0 {
		m.owner = ""
	}
	if w := m.head(); m.state == Asking && m.token != 0 || w == nil || w.bound() != m.bound {
		m.ask()
		return
	}
	if m.state != Confirming {
		m.state = Standing
	}
	m.start(true)
}

// verdicts are for a call that had no answer. Who was never answered fails at once, or the second time
// if the outcome is unknown: that of a lost reply is known when the owner asks again. Who was answered
// fails when the silence is longer than its lease.
func (m *Machine) verdicts(unknown bool) {
	if m.fifo.n > crowd && m.now-m.judged < crowdedEvery {
		return
	}
	m.judged = m.now
	var next *Waiter
	for w := m.fifo.first; w != nil; w = next {
		next = w.next
		over := false
		if w.heard != m.answers {
			over = m.now-m.heardAt > w.Terms.Length
		} else if w.since != m.no {
			w.fails++
			over = !unknown || w.Try || w.fails > 1
		}
		if over {
			m.fail(w, Unreachable)
		}
	}
}

// serve gives what was granted to the place to the head, after a renewal if confirm.
func (m *Machine) serve(first, top int64, confirm bool) {
	m.token, m.top = first, top
	w := m.head()
	if !m.fits(w) {
		m.ask()
		return
	}
	m.stop()
	if confirm {
		m.state = Confirming
		m.renew()
		return
	}
	m.hold(w, first, top)
	m.give(w, true)
}

// hold makes what was granted w's.
func (m *Machine) hold(w *Waiter, first, top int64) {
	m.h = tenure{m.owner, first, first, top, w.Terms, m.doubt}
	m.state, m.owner, m.token, m.top = Held, "", 0, 0
}

func (m *Machine) give(w *Waiter, first bool) {
	m.fifo.remove(w)
	m.do(Action{Op: Serve, Waiter: w, Owner: m.h.owner, Token: m.h.token, Top: m.h.top, First: first, Terms: m.h.terms, Again: m.h.doubt})
}

func (m *Machine) reseat() {
	if !m.fits(m.head()) {
		m.ask()
	}
}

// fits reports whether the owner of the place can be w's.
func (m *Machine) fits(w *Waiter) bool {
	return w != nil && (w.bound() == m.bound || m.mut&inheritsGuard != 0)
}

// ask asks for the head, with the owner of the place if that fits. With nobody there the queue ends.
func (m *Machine) ask() {
	w := m.head()
	if w == nil {
		m.drop()
		m.state = Absent
		return
	}
	if m.owner == "" || !m.fits(w) {
		m.drop()
		m.fresh(w)
	}
	m.stop()
	m.abandon()
	m.state, m.token = Asking, 0
	m.call(Wait, w, 0)
}

// renew confirms the token that was granted.
func (m *Machine) renew() {
	if w := m.head(); m.fits(w) {
		m.call(Renew, w, m.token)
	} else {
		m.ask()
	}
}

func (m *Machine) call(op Op, w *Waiter, token int64) { m.do(m.form(op, w, token)) }

func (m *Machine) form(op Op, w *Waiter, token int64) Action {
	m.no++
	if !m.unheard {
		m.unheard, m.askedAt = true, m.now
	}
	m.asker, m.terms, m.calling, m.owes = w, w.Terms, true, true
	return Action{Op: op, Waiter: w, Owner: m.owner, Token: token, Terms: w.Terms, No: m.no, Run: m.others}
}

// drop gives up the place, and what a call under way may get.
func (m *Machine) drop() {
	m.stop()
	m.abandon()
	if m.owner != "" && m.owes && m.mut&noUndo == 0 {
		m.do(Action{Op: Undo, Owner: m.owner, Terms: m.terms, Again: m.doubt})
	}
	if m.mut&reusesOwner == 0 {
		m.owner = ""
	}
	m.token = 0
}

func (m *Machine) fresh(w *Waiter) {
	if m.owner == "" {
		m.owner = m.Fresh(w.Terms.Label)
	}
	m.bound, m.owes, m.doubt, m.placed, m.above, m.token = w.bound(), false, false, false, 0, 0
}

func (m *Machine) abandon() {
	if m.calling {
		m.calling, m.doubt = false, true
		m.do(Action{Op: Abandon, No: m.no})
	}
}

// head is the first waiter whose deadline is not over. Those before it are told that theirs is.
func (m *Machine) head() *Waiter {
	for w := m.fifo.first; w != nil; w = m.fifo.first {
		if !w.over(m.now) || m.mut&expiredHead != 0 {
			return w
		}
		m.fail(w, m.verdict())
	}
	return nil
}

func (m *Machine) fail(w *Waiter, err Err) {
	m.fifo.remove(w)
	m.do(Action{Op: Fail, Waiter: w, Err: err})
}

func (m *Machine) do(a Action) {
	a.Again = a.Again && m.mut&leavesOnce == 0
	m.out = append(m.out, a)
}

func (m *Machine) start(short bool) {
	m.timer = true
	m.do(Action{Op: Start, Short: short})
}

func (m *Machine) stop() {
	if m.timer {
		m.timer = false
		m.do(Action{Op: Stop})
	}
}

// mutation breaks a rule, for the test of the tests.
type mutation uint16

const (
	reusesOwner mutation = 1 << iota
	inheritsGuard
	replaces
	dropsPlace
	noUndo
	leavesOnce
	freshAfterFail
	passesBeyond
	noWaitAfter
	busyInOutage
	expiredHead
	forgetsEarly
)
