// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/integration/oracle"
)

// stamp is a time for the oracle.
func stamp(t time.Time) oracle.Stamp {
	if t.IsZero() {
		return 0
	}
	return oracle.Stamp(t.UnixNano())
}

// landing is when a key came to another server, as replication counts there.
type landing struct {
	node   *redis.Node
	offset int64
}

// closing notes an answer that nobody gets the lock yet, for so many milliseconds, at a server whose
// memory is younger than the guard. In peace no memory begins anew.
func (o *observer) closing(l *lock, n *redis.Node, left int64) {
	now := time.Now()
	l.closed = now.Add(time.Duration(left) * time.Millisecond)
	guard := o.mix.guard
	began := l.closed.Add(-guard)
	o.report.Count(Checks, "5 guard", 1)
	if began.After(now) {
		o.broken(l.name, 5, "nobody gets it for %d ms, and the guard is %v", left, guard)
	}
	if was := o.began[n]; was.After(o.calmFrom) && o.faults == 0 && began.Sub(was) > guard/100 {
		o.broken(l.name, 5, "the memory of %s began at %v, and again at %v", n.Addr(), was, began)
	}
	o.began[n] = began
}

// grant is a token that a server gave.
type grant struct {
	fence int64
	owner string
	slot  int
}

// granted notes a grant.
func (l *lock) granted(fence int64, owner string, slot int) {
	l.grants = append(l.grants, grant{fence, owner, slot})
	if len(l.grants) > 2000 {
		l.grants = append([]grant(nil), l.grants[1000:]...)
	}
}

// grantOf returns to whom of a process a server gave the token, or the run that it is in: the rest of it
// is passed on in memory. Of several servers two can give the same token to two owners, of whom one
// gets a majority.
func (l *lock) grantOf(fence int64, label string) grant {
	best := grant{}
	for _, g := range l.grants {
		if g.fence <= fence && g.fence >= best.fence && labelOf(g.owner) == label {
			best = g
		}
	}
	return best
}

type releaseCall struct {
	owner string
	at    time.Time
	yes   bool
}
