// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"testing"
	"time"
)

const tick = 5 * time.Second

// walkTerms are a few ticks each, so that few states are different.
var walkTerms = &Terms{Length: 3 * tick, RenewEvery: tick, MaxRenewals: 1, MaxHold: 2 * tick, Grace: tick}

// world is a lease, its server, and what is under way between them.
type world struct {
	lease   Lease
	now     time.Time
	server  time.Time // the end of its lease: no renewal shortens it
	pending bool      // a renewal was sent and has no answer; done: the server has executed it
	done    bool
	sent    time.Time
	length  time.Duration
	looking bool

	late       bool // an automatic one that was given up has an answer on its way, until the next tick
	lateSent   time.Time
	lateLength time.Duration
}

// worlds are where a walk begins.
func worlds() []world {
	start := time.Unix(1_800_000_000, 0)
	return []world{
		{lease: Provisional(walkTerms, start, start.Add(3*tick-1)), now: start, server: start.Add(3 * tick)},
		{lease: New(walkTerms, start), now: start, server: start.Add(walkTerms.Length)},
	}
}

// key is the same for worlds with the same future. A time counts in ticks from now, because Step is
// called at ticks; one that is past is past.
type key struct {
	state                                   State
	until, renew, look, limit, server, sent int8
	renewals                                int8
	length, asked, want                     time.Duration
	asking, byHand, doubted, looking, known bool
	news                                    bool
	late                                    bool
	lateSent                                int8
	lateLength                              time.Duration
}

func (w *world) key() key {
	l, in := &w.lease, func(at time.Time) int8 {
		if at.IsZero() {
			return -1
		}
		return int8(max(0, (at.Sub(w.now)+tick-1)/tick))
	}
	if l.state == Over { // it is final: only what was under way can happen to it
		return key{state: Over, asking: w.pending, known: w.done, late: w.late}
	}
	k := key{state: l.state, until: in(l.until), renew: in(l.renewAt), look: in(l.lookAt), limit: in(l.limitAt),
		server: in(w.server), length: l.length, asking: w.pending, doubted: l.doubted, looking: w.looking}
	if l.state <= Held { // nobody counts them when the work is over
		k.renewals = int8(l.renewals)
	}
	if w.pending {
		k.sent, k.asked, k.want = int8(w.now.Sub(w.sent)/tick), l.asked, w.length
		k.byHand, k.known, k.news = l.byHand, w.done, l.news
	}
	told := *l
	told.Late(w.lateSent, w.lateLength)
	if k.late = w.late && l.state == Refused; w.late && told != *l {
		k.late = true // it changes something
		k.lateSent, k.lateLength = int8(w.now.Sub(w.lateSent)/tick), w.lateLength
	}
	return k
}

func (s State) String() string {
	return [...]string{"confirming", "held", "stopping", "refused", "over"}[s]
}

// place is where a cell is in the table.
type place struct {
	event string
	State
}

func (p place) String() string { return p.event + " in " + p.State.String() }

// walk checks every event in every world against the table.
type walk struct {
	*testing.T
	rows    map[string][]cell
	reached map[place]int
}

// must is require without its cost, which would be most of the walk's.
func (t *walk) must(ok bool, format string, args ...any) {
	if !ok {
		t.Fatalf(format, args...)
	}
}

// check notes that an event did, or with ok false did not do, what a cell of the table says.
func (t *walk) check(row string, before, after State, ok bool, action string) {
	want := t.rows[row][before]
	name := place{row, before}
	switch {
	case !ok:
		t.must(before == after, "%v was refused, and changes the state to %s", name, after)
		if want.next == "no" {
			t.reached[name]++
		}
		return
	case action != "":
		t.must(want.action == action, "%v: %s", name, action)
	}
	t.must(want.next == after.String(), "%v: %s, not %s", name, after, want.next)
	t.reached[name]++
}

// send notes that the lease asks for a renewal.
func (t *walk) send(w *world, length time.Duration) {
	t.must(!w.pending, "the slot is taken twice")
	w.pending, w.done, w.sent, w.length = true, false, w.now, length
}

func (t *walk) tick(w *world) {
	w.now, w.late = w.now.Add(tick), false
	for {
		before := w.lease.State()
		action := w.lease.Step(w.now)
		after := w.lease.State()
		switch action {
		case None:
			t.must(before == after, "%s became %s", before, after)
			due := w.lease.Due()
			t.must(due.IsZero() == (after == Over), "%s is due at %v", after, due)
			t.must(after == Over || due.After(w.now), "%s leaves behind what is due", after)
			return
		case Renew:
			t.send(w, w.lease.Length())
		case Verify:
			t.send(w, 0)
		case Look:
			t.must(!w.looking, "one look at a time")
			w.looking = true
		case StopMaxHold, StopMaxRenewals:
			t.check("limit", before, after, true, "stop")
		case Expire:
			t.check("deadline", before, after, true, "Expire")
		case GiveBack:
			t.check("grace", before, after, true, "GiveBack")
		}
	}
}

// events are the rows of the table that are not times. do returns false if the lease refuses it, and
// possible is nil if it can happen at any time.
var events = []struct {
	row      string
	possible func(w *world) bool
	do       func(t *walk, w *world) bool
}{
	{"Renewed", func(w *world) bool { return w.pending && w.done }, func(_ *walk, w *world) bool {
		w.pending = false
		w.lease.Renewed(w.sent)
		return true
	}},
	{"Failed", func(w *world) bool { return w.pending }, func(_ *walk, w *world) bool {
		if w.done && !w.lease.byHand && w.length > 0 {
			w.late, w.lateSent, w.lateLength = true, w.sent, w.length
		}
		w.pending = false
		w.lease.Failed(w.now)
		return true
	}},
	{"Late", func(w *world) bool { return w.late }, func(t *walk, w *world) bool {
		w.late = false
		w.lease.Late(w.lateSent, w.lateLength)
		return true
	}},
	{"Refuse", nil, func(_ *walk, w *world) bool { w.lease.Refuse(); return true }},
	{"Pass", nil, func(_ *walk, w *world) bool { return w.lease.Pass(w.now) }},
	{"Extend", nil, func(t *walk, w *world) bool { return t.extend(w, 4*tick) }},
	{"Extend", nil, func(t *walk, w *world) bool { return t.extend(w, 2*tick) }},
	{"Stop", nil, func(_ *walk, w *world) bool { w.lease.Stop(w.now.Add(w.lease.terms.Grace)); return true }},
	{"Stop", nil, func(_ *walk, w *world) bool { w.lease.Stop(time.Time{}); return true }},
	{"End", nil, func(_ *walk, w *world) bool { w.lease.End(); return true }},
}

func (t *walk) extend(w *world, d time.Duration) bool {
	before := w.lease.Until()
	asks, ok := w.lease.Extend(w.now, d)
	if ok {
		t.must(asks == d, "it asks for %v", asks)
		t.send(w, asks)
		t.must(w.lease.Until() == earlier(before, Deadline(w.now, d)), "less counts at once, more when it is answered")
	}
	return ok
}

// quiet are the events that change no state by themselves.
var quiet = []struct {
	possible func(w *world) bool
	do       func(w *world)
}{
	{func(w *world) bool { return w.pending && !w.done && w.now.Before(w.server) }, func(w *world) {
		// the server does what was sent
		w.done, w.server = true, later(w.server, w.now.Add(w.length))
	}},
	{func(w *world) bool { return w.looking }, func(w *world) { w.looking = false; w.lease.Looked(true) }},
	{func(w *world) bool { return w.looking }, func(w *world) { w.looking = false; w.lease.Looked(false) }},
	{func(w *world) bool { return w.looking }, func(w *world) { w.looking = false; w.lease.LookFailed(w.now) }},
	{func(w *world) bool { return true }, func(w *world) { w.lease.Noticed(w.now) }},
}

// next returns the worlds that can follow.
func (t *walk) next(from world) (found []world) {
	before := from.lease.State()
	passed := from
	t.tick(&passed)
	found = append(found, passed)
	for _, e := range events {
		if w := from; e.possible == nil || e.possible(&w) {
			ok := e.do(t, &w)
			t.check(e.row, before, w.lease.State(), ok, "")
			t.must(e.row == "Extend" || !w.lease.Until().Before(from.lease.Until()), "%s shortens the lease", e.row)
			t.must(before <= Stopping || w.lease.Until() == from.lease.Until(), "%s prolongs what is lost", e.row)
			found = append(found, w)
		}
	}
	for _, e := range quiet {
		if w := from; e.possible(&w) {
			e.do(&w)
			t.must(before == w.lease.State(), "%s became %s", before, w.lease.State())
			found = append(found, w)
		}
	}
	return found
}

// Everything that can happen, in every order, each state once: what the table says happens, each of
// its cells is reached, and nobody works for longer than the server keeps the lock.
func TestWalk(t *testing.T) {
	run := &walk{t, table(t), map[place]int{}}
	seen, queue, transitions := map[key]bool{}, worlds(), 0
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		for _, n := range run.next(w) {
			transitions++
			if n.lease.State() <= Stopping {
				run.must(n.pending == n.lease.Asking(), "a renewal under way: %v; the slot taken: %v",
					n.pending, n.lease.Asking())
			}
			run.must(!n.lease.Until().After(n.server), "%s: the deadline is later than the server's", n.lease.State())
			if k := n.key(); !seen[k] {
				seen[k] = true
				queue = append(queue, n)
			}
		}
	}
	for row, cells := range run.rows {
		for state, c := range cells {
			name := place{row, State(state)}
			if (c.next == "-") != (run.reached[name] == 0) {
				t.Errorf("%v (%s) was reached %d times", name, c.next, run.reached[name])
			}
		}
	}
	t.Logf("%d states, %d transitions, %d cells of the table", len(seen), transitions, len(run.reached))
}
