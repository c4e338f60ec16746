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
	PerSecond float64   `json:"hand_overs_per_second"`
	Locks     []Lock    `json:"locks"`            // those with most waiters, then those held longest
	Errors    []string  `json:"errors,omitempty"` // what could not be seen
	More      bool      `json:"more"`             // there are more locks than the limit lets in
}

// Rest is how many times as long as a look took the next one is put off, at least: looking at many
// locks is work for the servers.
const Rest = 4

// Series looks again and again, and counts the locks whose holder is another one than at the last
// look: at least so many were handed over. What happens between two looks, or within a process,
// cannot be seen from outside.
type Series struct {
	View   *View
	Filter Filter
	Within time.Duration // of one look

	last   time.Time
	tokens map[string]int64
}

// Look looks once more. Not for concurrent use.
func (s *Series) Look(ctx context.Context) Look {
	ctx, cancel := context.WithTimeout(ctx, s.Within)
	defer cancel()
	look := Look{At: time.Now().UTC(), Locks: []Lock{}}
	tokens := map[string]int64{}
	list, err := s.View.List(ctx, s.Filter, nil, func(l Lock) {
		if l.Held {
			tokens[l.Name] = l.Token
		}
		if before := s.tokens[l.Name]; before > 0 && l.Token > before {
			look.HandOvers++
		}
	})
	if err != nil {
		look.Errors = []string{err.Error()}
	}
	look.Total, look.Held, look.Waiting, look.More = list.Total, list.Held, list.Waiting, list.More() > 0
	look.Locks = append(look.Locks, list.Locks...)
	if took := look.At.Sub(s.last).Seconds(); !s.last.IsZero() && took > 0 {
		look.PerSecond = float64(look.HandOvers) / took
	}
	if err == nil || len(tokens) > 0 {
		s.tokens, s.last = tokens, look.At
	}
	return look
}
