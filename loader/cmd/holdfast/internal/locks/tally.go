// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"time"
)

// Look is one of a series of looks at all locks.
type Look struct {
	At        time.Time `json:"at"`
	Total     int       `json:"total"`   // locks, also those that the limit leaves out; of all of these
	Held      int       `json:"held"`    // are held
	Waiting   int       `json:"waiting"` // wait
	HandOvers int       `json:"hand_overs"`
	PerSecond float64   `json:"hand_overs_per_second"` // counted over a second at least
	Locks     []Lock    `json:"locks"`                 // in the filter's order
	Losses    []Loss    `json:"losses"`                // the last ones that the series saw, the newest first
	Errors    []string  `json:"errors,omitempty"`      // what could not be seen
	More      bool      `json:"more"`                  // there are more locks than the limit lets in
}

// Loss is a lock that ended before its holder gave it back, as far as that can be seen from outside.
type Loss struct {
	At   time.Time `json:"at"` // of the look that saw it
	Name string    `json:"name"`
	Who
	Token  int64  `json:"token"`
	Cause  Cause  `json:"cause"`
	Reason string `json:"reason,omitempty"` // of a break
}

// Cause is why a lock was lost, in the words of the client's metrics.
type Cause string

// The causes.
const (
	CauseBroken  Cause = "broken"  // by an operator; the key remembers it for a while
	CauseExpired Cause = "expired" // its lease ran out: it was not renewed any more, and then it was gone
)

// Lost is how many locks were lost, and when the last of them was seen.
type Lost struct {
	Count int
	Last  time.Time
}

// Causes are all causes.
var Causes = []Cause{CauseBroken, CauseExpired}

const (
	lastLosses = 20
	// two looks can follow each other at once, and one hand-over between them is no rate
	rateOver = time.Second
	// The next look is put off for so many times as long as one took, at least: looking at many locks is work
	// for the servers. One that failed waited, too, for who did not answer.
	rest       = 4
	restFailed = 5 * time.Second
)

// Pause is how long to wait after a look that took so long, before the next one.
func (l Look) Pause(every, took time.Duration) time.Duration {
	if took *= rest; len(l.Errors) > 0 {
		took = min(took, restFailed)
	}
	return max(every, took)
}

// Series looks again and again, and compares: a lock whose holder is another one than at the last look
// was handed over. What happens between two looks, or within a process, cannot be seen from outside: at
// least so many were handed over, and at least so many were lost.
type Series struct {
	View   *View
	Within time.Duration  // of one look
	Each   func(Lock)     // if not nil, is called with each lock that the filter wants
	Lost   map[Cause]Lost // so far

	filter    Filter
	seen      map[string]holding
	losses    []Loss
	counted   time.Time // from then on handOvers are counted
	handOvers int
	perSecond float64 // before that
}

// holding is how a lock was seen last.
type holding struct {
	Lock
	longest time.Duration // that was left of its lease at any look
}

// Run looks until the context ends, or until show returns false. Between two looks it pauses for as long
// as every says, and as the look's Pause says at least.
func (s *Series) Run(ctx context.Context, f Filter, every time.Duration, show func(Look) bool) {
	for {
		begun := time.Now()
		look := s.Look(ctx, f)
		if ctx.Err() != nil || !show(look) {
			return
		}
		select {
		case <-time.After(look.Pause(every, time.Since(begun))):
		case <-ctx.Done():
			return
		}
	}
}

// Look looks once more. Not for concurrent use.
func (s *Series) Look(ctx context.Context, f Filter) Look {
	ctx, cancel := context.WithTimeout(ctx, s.Within)
	defer cancel()
	now := Look{At: time.Now().UTC(), Locks: []Lock{}, Losses: []Loss{}}
	seen := map[string]holding{}
	under := &look{filter: f}
	under.suspects = func(l Lock) bool { return s.seen[l.Name].Token > 0 && s.seen[l.Name].Token != l.Token }
	compared := false
	under.each = func(l Lock, wanted bool) {
		compared = true
		before := s.seen[l.Name]
		if before.Token > 0 && before.Token != l.Token {
			s.ended(before, l, now.At, under.now())
			before.longest = 0
			if l.Held && l.Token > before.Token {
				now.HandOvers++
			}
		}
		if l.Held && l.Token > 0 {
			seen[l.Name] = holding{l, max(before.longest, l.Remaining())}
		}
		if wanted && s.Each != nil {
			s.Each(l)
		}
	}
	list, err := s.View.list(ctx, under)
	if err == nil && f == s.filter {
		for name, before := range s.seen {
			if !under.seen[s.View.Key(name)] { // else it was compared
				s.ended(before, Lock{}, now.At, under.now())
			}
		}
	}
	if err != nil {
		now.Errors = []string{err.Error()}
	}
	now.Total, now.Held, now.Waiting, now.More = list.Total, list.Held, list.Waiting, list.More() > 0
	now.Locks = append(now.Locks, list.Locks...)
	now.Losses = append(now.Losses, s.losses...)
	if err == nil || compared {
		s.seen, s.filter = seen, f
		s.handOvers += now.HandOvers
		if took := now.At.Sub(s.counted); took >= rateOver {
			s.perSecond = float64(s.handOvers) / took.Seconds() // 0 at first, when that is long
			s.counted, s.handOvers = now.At, 0
		}
	}
	now.PerSecond = s.perSecond
	return now
}

// ended notes a loss, if that is how a holding ended. after is the lock when that was seen, at a time of
// the server's clock. A holder that renews has more than half of its lease at any time, so one that had
// less, and was gone no sooner than its lease, did not give the lock back. Of several nobody can tell.
func (s *Series) ended(before holding, after Lock, look, at time.Time) {
	loss := Loss{look, before.Name, before.Who, before.Token, CauseExpired, ""}
	if after.Since != nil {
		at = *after.Since
	}
	switch b := after.Broken; {
	case b != nil && b.Token >= before.Token:
		loss.Who, loss.Token, loss.Cause, loss.Reason = b.Who, b.Token, CauseBroken, b.Reason
	case before.Kind != "" || after.Kept() || before.Remaining() > before.longest/2 || at.Before(before.ends):
		return
	}
	if s.Lost == nil {
		s.Lost = map[Cause]Lost{}
	}
	s.Lost[loss.Cause] = Lost{s.Lost[loss.Cause].Count + 1, look}
	s.losses = append([]Loss{loss}, s.losses[:min(len(s.losses), lastLosses-1)]...)
}
