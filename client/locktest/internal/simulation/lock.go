package simulation

import (
	"time"
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

type releaseCall struct {
	owner string
	at    time.Time
	yes   bool
}
