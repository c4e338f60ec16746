// SPDX-License-Identifier: Apache-2.0

// Package oracle decides who may be inside a lock with whom: by what holders saw, by the faults that
// struck meanwhile, and by one table of what docs/guarantees.md admits. The simulation, the chaos
// rounds and the failure tests tell it what happened. It has no clock, and does no I/O.
package oracle

import (
	"fmt"
	"time"
)

// Stamp is a time in nanoseconds of one clock, which is that of all who are judged together.
type Stamp int64

// Forever is later than everything.
const Forever = Stamp(1 << 62)

// Add returns the time d later.
func (s Stamp) Add(d time.Duration) Stamp { return s + Stamp(d) }

// Sub returns how long after t it is.
func (s Stamp) Sub(t Stamp) time.Duration { return time.Duration(s - t) }

// Hold is a lock as its holder saw it.
type Hold struct {
	Who   string
	Lock  string
	Level Level
	Owner string
	Token int64
	Limit int   `json:",omitempty"` // of a limited holder, or Sharing; 0: it must be alone
	Slot  int   `json:",omitempty"` // of a limited or a shared one
	Start Stamp // of the call that got it: it was granted no earlier
	Enter Stamp // it was live then, or a moment before
	Last  Stamp // it was live then, or a moment later: the last look that found it so
	End   Stamp // it was over then; Forever if the holder was killed
	Why   string

	Shared bool  `json:",omitempty"` // others use the owner string too
	Told   Stamp `json:",omitempty"` // when a server last said that the owner does not have it; 0: never
}

func (h *Hold) String() string {
	return fmt.Sprintf("%s (%s, token %d, owner %s, limit %d, slot %d)", h.Who, h.Level, h.Token, h.Owner, h.Limit, h.Slot)
}

// Same reports whether both are one acquisition, or two that do not exclude each other. A caller whose
// lease seemed to be over can learn that it is not.
func (h *Hold) Same(other *Hold) bool {
	return h.Owner == other.Owner && (h.Token == other.Token || h.Shared && other.Shared)
}

// Sharing is the limit of those who share a lock.
const Sharing = 1001

// Kind is exclusive, limited or shared by the limit, as the library counts them.
func Kind(limit int) int { return min(limit, 1) + limit/Sharing }

// Excludes reports whether the two may not be inside together. Two who are limited may not by their limits
// either: see Crowded.
func (h *Hold) Excludes(other *Hold) bool {
	return !h.Same(other) && (h.Limit == 0 || Kind(h.Limit) != Kind(other.Limit) || h.Slot == other.Slot)
}

// Fault is something that struck.
type Fault struct {
	Name  string // for people
	Cause Cause  // None: it takes no lock from anybody
	Lock  string // the only lock that it concerns; "": all
	Owner string // the only owner that may have lost it; "": all
	Start Stamp
	End   Stamp // when all of its effects on servers were over; Forever while it lasts
}

// Judge decides over holders by the faults that it knows.
type Judge struct {
	Faults []*Fault
	Guard  time.Duration // that all holders ask for
	// Aftermath is how long after the end of a fault a lock that was granted then may still be lost:
	// requests that were on their way reach a server whose grants do not count any more.
	Aftermath time.Duration
	// Exact: faults are known to the moment, and clocks differ. Else all servers share one clock, so of
	// two holders the one with the older token has lost the lock.
	Exact bool
}

// Lost returns the first fault that may have done at least so much to the lock of a holder by a moment;
// nil if none has.
func (j *Judge) Lost(h *Hold, at Stamp, least Verdict) *Fault {
	for _, f := range j.Faults {
		if f.Cause.Verdict(h.Level) >= least && j.strikes(f, h, at) && (excuses[f.Cause].also&later == 0 || j.afterLoss(f)) {
			return f
		}
	}
	return nil
}

// strikes reports whether a fault that concerns h was under way between its grant and a moment. An
// owner string that nobody else uses has one lease, also if it was passed on in memory.
func (j *Judge) strikes(f *Fault, h *Hold, at Stamp) bool {
	told := h.Told
	if h.Shared { // it may have been another one who was told
		told = 0
	}
	switch {
	case f.Lock != "" && f.Lock != h.Lock, f.Owner != "" && f.Owner != h.Owner, f.Start > at:
		return false
	case f.Start < told && told < h.Enter: // it knew before it entered
		return false
	case f.Owner != "" && !h.Shared:
		return true
	}
	since := h.Start
	if told > 0 { // it stood in line before this one of its process was passed the lock
		since = min(since, told)
	}
	return f.End.Add(j.Aftermath) >= since
}

// afterLoss reports whether locks were lost within a guard before f.
func (j *Judge) afterLoss(f *Fault) bool {
	for _, loss := range j.Faults {
		if loss.Cause.Forgets() && loss.Start <= f.End && loss.End.Add(j.Guard+j.Aftermath) >= f.Start {
			return true
		}
	}
	return false
}

// Meet judges that two, who are not the same, were inside at a moment. It returns who of them has lost
// the lock, and the fault that excuses it: if that is nil, there is none.
func (j *Judge) Meet(a, b *Hold, at Stamp) (lost *Hold, why *Fault) {
	older, newer := a, b
	if b.Token < a.Token {
		older, newer = b, a
	}
	if why := j.Lost(older, at, Second); why != nil {
		return older, why
	}
	if !j.Exact {
		at = newer.Enter
	}
	if why := j.Lost(newer, at, Second); why != nil && (j.Exact || why.Cause.Splits()) {
		return newer, why
	}
	return older, nil
}

// Crowded returns who of those inside at a moment was let in beyond its limit: beside too many who came
// before it. Those who meet it by a fault do not count. nil: nobody was.
func (j *Judge) Crowded(inside []*Hold, at Stamp) *Hold {
	for _, h := range inside {
		before := map[int64]bool{}
		for _, other := range inside {
			if other.Token >= h.Token || h.Excludes(other) {
				continue
			}
			if _, why := j.Meet(h, other, at); why == nil {
				before[other.Token] = true
			}
		}
		if h.Limit > 0 && len(before) >= h.Limit {
			return h
		}
	}
	return nil
}
