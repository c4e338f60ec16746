package simulation

import (
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// loss is a fault that took a lock from its owner, as the guarantees' table admits.
type loss struct {
	owner string
	at    time.Time
	why   string
}

// What no lock is lost by that all replicas have.
const (
	deposed      = "a deposed primary goes on"
	unreplicated = "a forced failover lost what was not replicated"
)

// stranded loses a lock that all replicas had of the server that it came from.
const stranded = "the target of a move was lost before its replica had the key"

// landing is when a key came to another server, as replication counts there.
type landing struct {
	node   *redis.Node
	offset int64
}

// restarted loses a guarded lock too, as those above do, but never lets another holder in beside the
// one that lost it.
const restarted = "a restart without all of its memory"

// grantedThere lets a holder in beside one of a guarded lock too: the new primary has renewed its
// lock, and the old one, which goes on, has not heard of it.
const grantedThere = "a deposed primary grants"

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
}

// granted notes a grant.
func (l *lock) granted(fence int64, owner string) {
	l.grants = append(l.grants, grant{fence, owner})
	if len(l.grants) > 2000 {
		l.grants = append([]grant(nil), l.grants[1000:]...)
	}
}

// ownerOf returns whom a server gave the token to, or the run that it is in.
func (l *lock) ownerOf(fence int64) string {
	best := grant{}
	for _, g := range l.grants {
		if g.fence <= fence && g.fence >= best.fence {
			best = g
		}
	}
	return best.owner
}

// grantedTo returns to whom of a process a server gave the token. Of several servers two can give the
// same token to two owners, of whom one gets a majority.
func (l *lock) grantedTo(fence int64, label string) (owner string) {
	for _, g := range l.grants {
		if g.fence == fence && labelOf(g.owner) == label {
			owner = g.owner
		}
	}
	return owner
}

type releaseCall struct {
	owner string
	at    time.Time
	yes   bool
}
