// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/oracle"
)

// began is when stamps begin, by the monotonic clock.
var began = time.Now()

func now() oracle.Stamp { return oracle.Stamp(time.Since(began)) }

// span is a stretch of time, as from before a failover to when the old primary granted no more.
type span struct{ from, to oracle.Stamp }

// period is what happened in the room over one fault.
type period struct {
	holds       []*oracle.Hold // of those who came in, in order
	lost        int            // calls that said so of their lock
	taken       int            // of these, while the lease had not ended
	unreachable int            // calls that did not reach the server
	strange     []error        // of calls, that no fault explains
}

func (p period) String() string {
	return fmt.Sprintf("%d entries; %d locks lost, %d calls unreachable", len(p.holds), p.lost, p.unreachable)
}

// within counts the entries of a span, and returns the longest time in it without one.
func (p period) within(s span) (entries int, longest time.Duration) {
	last := s.from
	for _, h := range p.holds {
		if h.Enter < s.from || h.Enter > s.to {
			continue
		}
		entries++
		longest, last = max(longest, h.Enter.Sub(last)), h.Enter
	}
	return entries, max(longest, s.to.Sub(last))
}

// room is where only the holder of the lock may be.
type room struct {
	mu    sync.Mutex
	judge oracle.Judge
	holds []*oracle.Hold // of all periods
	from  int            // where the present one begins
	now   period
}

// enter is for one whose context has not ended. It was granted the lock a moment before, which on a busy
// machine is the judge's aftermath.
func (r *room) enter(i int, l *client.Lock) *oracle.Hold {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := now()
	lives := l.Context().Err() == nil
	h := &oracle.Hold{Who: fmt.Sprint("client ", i), Level: oracle.Default, Owner: l.Owner(), Token: l.Fence(),
		Start: at, Enter: at, Last: at, End: oracle.Forever}
	if lives {
		r.holds = append(r.holds, h)
	}
	return h
}

func (r *room) leave(h *oracle.Hold, l *client.Lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := now(); l.Context().Err() == nil {
		h.Last = at
	}
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

// found is who was inside beside another one, and whose token was not above all before.
func (r *room) found() (oracle.Finding, []oracle.Violation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.judge.Exclusion(r.holds), oracle.Tokens(r.holds)
}

// seen returns what was counted so far.
func (r *room) seen() period {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.now
	p.holds = r.holds[r.from:len(r.holds):len(r.holds)]
	return p
}

// reset returns what was counted, and begins anew.
func (r *room) reset() period {
	p := r.seen()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from, r.now = r.from+len(p.holds), period{}
	return p
}
