// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/integration/oracle"
)

// want is an Acquire in line that is under way.
type want struct {
	process *process
	who     string
	began   time.Time
	asks    time.Time // a holder of its process believed in the lock until then
	line    bool      // it waits in line, and does not poll
	shared  bool      // other processes may wait by the same owner string: one of them is told of a grant
	partly  bool      // it may have the lock, and wait for another one
	limit   int       // as of a holder
	valued  bool      // a value will do
}

const (
	recovery  = 6 * time.Second  // from the end of a fault until all clients are connected and subscribed again
	noticed   = 32 * time.Second // the longest lease, and a moment
	forgotten = 13 * time.Second // the longest pause between two tries of giving back, and a moment
)

// want notes that an Acquire begins.
func (o *observer) want(name string, w *want) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.began = time.Now()
	o.locks[name].wants[w] = true
}

// unwant notes that it has ended.
func (o *observer) unwant(name string, w *want) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.locks[name]
	delete(l.wants, w)
	l.wantedBy(w.process, time.Now())
}

func (l *lock) wantedBy(p *process, until time.Time) {
	l.wanted[p.label] = latest(l.wanted[p.label], until)
}

// calm is since when there is no fault. ok is false while there is one.
func (o *observer) calm() (since time.Time, ok bool) {
	return o.calmFrom, o.faults == 0
}

// auditEvery is between two audits. Those that can find nothing are left out: with one primary, until
// all have recovered from the last fault.
const auditEvery = 20 * time.Millisecond

// rest is how long it is until the next audit.
func (o *observer) rest(idle bool) time.Duration {
	if idle {
		return 5 * time.Second
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.need > 0 {
		return auditEvery
	}
	now := time.Now()
	from, calm := o.calm()
	if !calm {
		from = now
	}
	return max(auditEvery, min(from.Add(recovery).Sub(now), 500*time.Millisecond))
}

// audit looks at what must hold at any time.
func (o *observer) audit() {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	calmFrom, calm := o.calm()
	for _, l := range o.locks {
		if o.need > 0 {
			o.auditMajority(l, now, calm, calmFrom.Add(recovery+o.mix.guard))
			continue
		}
		if !calm {
			continue
		}
		o.auditHolders(l, now, calmFrom)
		o.auditValue(l, now, calmFrom.Add(recovery))
		if l.owner == "" {
			o.auditFree(l, now, calmFrom.Add(recovery))
		}
		for _, t := range l.terms {
			if t.owner != "" {
				o.auditKept(l, t.owner, t.since, now, calmFrom.Add(recovery))
			}
		}
	}
}

// auditHolders looks for holders who never learn of their loss: each asks for its lease anew within it,
// counted from the first audit in calm that finds it lost.
func (o *observer) auditHolders(l *lock, now, calmFrom time.Time) {
	for _, h := range l.holders {
		if h.owner == "" || h.lock == nil && h.done == nil {
			continue
		}
		o.report.Count(Checks, "2 noticed", 1)
		if l.of(h.owner) != nil || !h.alive() {
			h.lost = time.Time{}
			continue
		}
		if h.lost.Before(calmFrom) {
			h.lost = now
		}
		if now.Sub(h.lost) >= noticed {
			o.broken(l.name, 2, "the context of %s (%s, token %d) is alive, and the server says %q for long", h.who, h.owner, h.fence, l.owner)
			h.released = true // once
		}
	}
}

// fits reports whether there is room for the first in line; if there is no line, for one of this limit.
func (l *lock) fits(limit int, now time.Time) bool {
	taken := 0
	for _, t := range l.terms[1:] {
		if t.owner != "" || t.stays.After(now) {
			taken++
		}
	}
	if l.head >= 0 {
		limit = l.head
	}
	return taken == 0 || taken < limit && l.kind == oracle.Kind(limit)
}

// given reports whether the process has a slot that none of its holders works in: it is to hear of it.
func (l *lock) given(p *process) bool {
	return slices.ContainsFunc(l.terms[1:], func(t *term) bool {
		return labelOf(t.owner) == p.label &&
			!slices.ContainsFunc(l.holders, func(h *holder) bool { return h.owner == t.owner && h.alive() })
	})
}

// auditFree looks for a free lock, or room in it, that somebody waits for.
func (o *observer) auditFree(l *lock, now, from time.Time) {
	for w := range l.wants {
		if l.believedBy(w.process) && w.limit == 0 || !l.fits(w.limit, now) || l.given(w.process) {
			w.asks = now // from now on, at the earliest
			continue
		}
		if !w.line || w.process.isDead() {
			continue
		}
		opens := l.closed
		if o.need > 0 {
			opens = o.old()
		}
		since := latest(w.began, from, l.free, opens, l.kept, w.asks)
		if now.Before(since) {
			continue
		}
		o.report.Count(Checks, "5 free", 1)
		if waited := now.Sub(since); waited > o.patience(l, w, since) {
			o.broken(l.name, 5, "free for %v, while %s waits (since %v ago)", waited, w.who, now.Sub(w.began))
			w.line = false // once
			return
		}
	}
}

// patience is how long somebody may wait for a lock that is free since then.
func (o *observer) patience(l *lock, w *want, since time.Time) time.Duration {
	if o.need > 0 {
		return splitVotes
	}
	patience := 50*time.Millisecond + repeats + 10*time.Millisecond + 8*o.latency // what the network adds
	// a line that is closed says so to who asks, and nobody serves it when a minimum is over
	if l.late || w.shared || l.moved || o.mix.guard > 0 || l.kept.After(since.Add(-waitersAsk)) {
		patience += waitersAsk
	}
	return patience
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// believedBy reports whether somebody of the process may believe in a lock that it has lost: those
// behind it in its line do not ask the server until it notices. That is at once if it can be told,
// else at its next renewal or after a second.
func (l *lock) believedBy(p *process) bool {
	for _, h := range l.holders {
		if h.process == p && h.limit == 0 && h.alive() {
			return true
		}
	}
	for w := range l.wants {
		if w.process == p && w.partly {
			return true
		}
	}
	return false
}

// auditKept looks for a lock that the server keeps, since then, for a process that does not want it.
func (o *observer) auditKept(l *lock, owner string, kept, now, from time.Time) {
	p := o.hosts[labelOf(owner)]
	if p == nil || p.isGone() || l.ghosts[owner] || now.Before(from) {
		return
	}
	for w := range l.wants {
		if w.process == p {
			return
		}
	}
	since := latest(from, kept, l.wanted[p.label]) // a place in line that was left behind can be served late
	for _, h := range l.holders {
		if h.process != p || h.limit > 0 && h.owner != owner {
			continue
		}
		if h.alive() {
			return
		}
		if !h.released && h.ended.IsZero() {
			h.ended = now // or a little earlier
		}
		if !h.ended.IsZero() {
			since = latest(since, h.ended.Add(h.grace))
		}
	}
	o.report.Count(Checks, "8 kept", 1)
	if now.Sub(since) > forgotten {
		o.broken(l.name, 8, "the server keeps it for %s, which nobody there wants since %v", owner, now.Sub(since))
		l.wantedBy(p, now.Add(time.Hour)) // once
	}
}

// fault notes that a fault begins. The function that it returns ends it.
func (o *observer) fault(kind, format string, args ...any) (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults++
	o.faulty = true
	o.report.Count(Faults, kind, 1)
	o.history.add("", "fault", kind+" "+format, args...)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.faults--
		o.calmFrom = time.Now()
		o.history.add("", "fault", "end of "+kind+" "+format, args...)
	}
}
