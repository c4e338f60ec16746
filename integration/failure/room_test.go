package failure

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/oracle"
)

// clock is the part of the time that matters here.
const clock = "15:04:05.000000"

// span is a stretch of time, as from before a failover to when the old primary granted no more.
type span struct{ from, to time.Time }

// entry is one time that a client came in with a lock.
type entry struct {
	lock *client.Lock
	at   time.Time
}

func (e entry) String() string {
	return fmt.Sprintf("token %d at %s", e.lock.Fence(), e.at.Format(clock))
}

// overlap is an entry while another client was inside, both with a context that had not ended.
type overlap struct{ first, second entry }

func (o overlap) String() string { return fmt.Sprintf("%v beside %v", o.second, o.first) }

// lateness is what a busy machine adds between an answer of the server and the entry.
const lateness = 250 * time.Millisecond

// admitted reports whether the guarantees admit the overlap for what was done to the servers, and the one
// who came later has the higher token.
func (o overlap) admitted(cause oracle.Cause, took span) bool {
	judge := oracle.Judge{Aftermath: lateness,
		Faults: []*oracle.Fault{{Cause: cause, Start: stamp(took.from), End: stamp(took.to)}}}
	first, second := o.first.hold(), o.second.hold()
	_, why := judge.Meet(first, second, second.Enter)
	return why != nil && second.Token > first.Token
}

// hold is the entry as the oracle sees it. It was granted a moment before, at the most lateness.
func (e entry) hold() *oracle.Hold {
	at := stamp(e.at)
	return &oracle.Hold{Level: oracle.Default, Owner: e.lock.Owner(), Token: e.lock.Fence(), Start: at, Enter: at}
}

// began is when stamps begin, by the monotonic clock.
var began = time.Now()

func stamp(t time.Time) oracle.Stamp { return oracle.Stamp(t.Sub(began)) }

// period is what happened in the room over one fault.
type period struct {
	entries     [contenders]int
	at          []entry // in order
	overlaps    []overlap
	disorder    int     // entries with a token that was not above all before
	lost        int     // calls that said so of their lock
	taken       int     // of these, while the lease had not ended
	unreachable int     // calls that did not reach the server
	strange     []error // of calls, that no fault explains
}

func (p period) String() string {
	return fmt.Sprintf("%d entries, %d beside another, %d tokens out of order; %d locks lost, %d calls unreachable",
		len(p.at), len(p.overlaps), p.disorder, p.lost, p.unreachable)
}

// within counts the entries of a span, and returns the longest time in it without one.
func (p period) within(s span) (entries int, longest time.Duration) {
	last := s.from
	for _, e := range p.at {
		if e.at.Before(s.from) || e.at.After(s.to) {
			continue
		}
		entries++
		longest, last = max(longest, e.at.Sub(last)), e.at
	}
	return entries, max(longest, s.to.Sub(last))
}

// room is where only the holder of the lock may be.
type room struct {
	mu     sync.Mutex
	inside [contenders]*entry
	top    int64 // the highest token so far
	now    period
}

func (r *room) enter(i int, l *client.Lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := entry{l, time.Now()}
	for _, other := range r.inside {
		if other != nil && l.Context().Err() == nil && other.lock.Context().Err() == nil {
			r.now.overlaps = append(r.now.overlaps, overlap{*other, e})
			break // one for each entry
		}
	}
	if l.Fence() <= r.top {
		r.now.disorder++
	}
	r.top = max(r.top, l.Fence())
	r.inside[i] = &e
	r.now.entries[i]++
	r.now.at = append(r.now.at, e)
}

func (r *room) leave(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside[i] = nil
}

// failed counts an error of a call. A fault explains that the server could not be reached, and that a lock
// was lost.
func (r *room) failed(call string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, client.ErrLost):
		r.now.lost++
		if !errors.Is(err, client.ErrExpired) {
			r.now.taken++
		}
	case errors.Is(err, client.ErrUnreachable):
		r.now.unreachable++
	default:
		r.now.strange = append(r.now.strange, fmt.Errorf("%s: %w", call, err))
	}
}

// seen returns what was counted so far, and the highest token.
func (r *room) seen() (p period, top int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now, r.top
}

// reset returns what was counted, and begins anew.
func (r *room) reset() period {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.now
	r.now = period{}
	return was
}
