package quorum

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// The times of those who do not get a lock.
const (
	firstBackoff = 4 * time.Millisecond // more than a giving back takes between servers that are near
	lastBackoff  = time.Second

	// So long one server's word is enough that somebody has the lock. More than a giving back takes to
	// reach all servers; so long a vote that was left behind at one server is in everybody's way.
	believed = 100 * time.Millisecond
)

// rivals are those who were found to have the locks that are wanted here.
type rivals struct {
	mu sync.Mutex
	by map[string]*rival // by key
}

type rival struct {
	holder  string
	since   time.Time
	backoff time.Duration
}

// first is the server that is asked first for a lock.
func (s *servers) first(key string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return int(h.Sum32() % uint32(len(s.members)))
}

// met notes that a server has a lock as somebody else's. It reports whether that is to be believed: it
// has not said so for long. After that the others are asked too.
func (r *rivals) met(key, holder string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.by[key]
	if known == nil {
		if len(r.by) >= many {
			clear(r.by)
		}
		known = &rival{holder: holder, since: now, backoff: firstBackoff / 2}
		r.by[key] = known
	}
	if known.holder == holder {
		known.backoff = min(2*known.backoff, lastBackoff)
	} else { // the lock moves
		known.holder, known.since = holder, now
		known.backoff = max(known.backoff/2, firstBackoff)
	}
	return now.Sub(known.since) < believed
}

// again is when to ask for a lock again that somebody else has for so long yet; not positive: nobody
// knows. The random part is large, so that of many one comes first.
func (r *rivals) again(key string, left time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	backoff := firstBackoff
	if known := r.by[key]; known != nil {
		backoff = known.backoff
	}
	backoff = backoff/2 + rand.N(backoff)
	if left > 0 && left < backoff {
		return left + rand.N(firstBackoff)
	}
	return backoff
}

// gone notes that the lock is this process's.
func (r *rivals) gone(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, key)
}

// refuse is the answer to an owner who does not get the lock.
func (s *servers) refuse(b *ballot, r fcall.Reply) fcall.Reply {
	r.Again = s.rivals.again(b.request.Key, r.Remaining)
	r.Spent = !b.settle()
	return r
}
