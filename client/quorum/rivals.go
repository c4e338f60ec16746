// SPDX-License-Identifier: Apache-2.0

package quorum

import (
	"cmp"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/cluster"
)

// The times of those who do not get a lock.
const (
	firstBackoff = 4 * time.Millisecond // more than a giving back takes between servers that are near
	lastBackoff  = time.Second

	// So long one server's word is enough that somebody has the lock. More than a giving back takes to
	// reach all servers; so long a vote that was left behind at one server is in everybody's way.
	believed = 100 * time.Millisecond
	// So long after rivals were met one server is asked before the others.
	lately = time.Second
)

// rivals are those who were found to have the locks that are wanted here.
type rivals struct {
	mu sync.Mutex
	by map[string]rival // by key, and by the place of an answer to lead
}

type rival struct {
	holder  string    // "": this process had the lock since
	since   time.Time // that the holder has it
	met     time.Time // the last time
	backoff time.Duration
}

// first is the server whose vote decides between those who come at once.
func (s *servers) first(key string) int { return int(cluster.Slot(key)) % len(s.members) }

// met notes that a server has a lock as somebody else's. It reports whether that is to be believed: it
// has not said so for long. After that the others are asked too.
func (r *rivals) met(key, holder string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.by[key]
	if !ok && len(r.by) >= many {
		clear(r.by)
	}
	if known.holder == holder {
		known.backoff = min(max(2*known.backoff, firstBackoff), lastBackoff) // it is none after beaten
	} else { // the lock moves, or nobody was met before
		known.holder, known.since = holder, now
		known.backoff = max(known.backoff/2, firstBackoff)
	}
	known.met = now
	r.by[key] = known
	return now.Sub(known.since) < believed
}

// again is when to ask for a lock again that somebody else has for so long yet; not positive: nobody
// knows. The random part is large, so that of many one comes first.
func (r *rivals) again(key string, left time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	backoff := cmp.Or(r.by[key].backoff, firstBackoff)
	backoff = backoff/2 + rand.N(backoff)
	if left > 0 && left < backoff {
		return left + rand.N(firstBackoff)
	}
	return backoff
}

// near reports whether others were found to have the lock lately.
func (r *rivals) near(key string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Sub(r.by[key].met) < lately
}

// beaten notes that the lock is this process's.
func (r *rivals) beaten(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.by[key]; ok {
		r.by[key] = rival{met: known.met}
	}
}

// refuse is the answer to an owner who does not get the lock.
func (s *servers) refuse(b *ballot, nth int, r fcall.Reply) fcall.Reply {
	key := b.wanted().Key
	s.rivals.met(key, r.Holder, time.Now())
	r.Again = s.rivals.again(key, r.Remaining)
	r.Spent = !b.settle(nth)
	return r
}
