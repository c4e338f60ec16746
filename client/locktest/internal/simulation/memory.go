package simulation

import (
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/integration/oracle"
)

// compare looks what a primary has forgotten, compared with the one before it or with itself before
// a restart.
func (o *observer) compare(l *lock, s state, n *redis.Node, nowUS int64) {
	until := time.Now().Add(time.Duration(s.until*1000-nowUS) * time.Microsecond)
	live := s.live(nowUS)
	if l.owner != "" && (!live || s.owner != l.owner || s.fence != l.fence || until.Before(l.until.Add(-time.Millisecond))) {
		why := o.retold[n]
		if (why == nothingLost || l.level) && o.skewed && (s.owner == l.owner && s.fence == l.fence || !live) {
			why = oracle.Differ
			l.lose(everybody, why) // also who asked the one, and is granted the lock by the other
		}
		o.forget(l, why)
	}
	if live && s.owner != l.owner {
		l.ghosts[s.owner] = true
	}
}

func (o *observer) forget(l *lock, why oracle.Cause) {
	if why == nothingLost {
		o.broken(l.name, 1, "%s had it before, and does not any more", l.owner)
	}
	l.lose(l.owner, why)
	if l.level && why == oracle.Unreplicated && l.stranded { // also if all replicas had it of the server that it came from
		l.lose(l.owner, oracle.Stranded)
	}
	o.history.add(l.name, "server", "%s lost it: %s", l.owner, why)
	l.owner = ""
	l.free = time.Now()
	l.gen++
}

// nothingLost is in no table: it admits nothing.
const nothingLost oracle.Cause = "nothing"

// retell says that a node's memory may be another from now on, and takes over what it has.
func (o *observer) retell(n *redis.Node, names []string, why oracle.Cause) {
	now := n.Now().UnixMicro()
	for _, name := range names {
		fields := n.Hash(prefix + name)
		o.mu.Lock()
		l := o.locks[name]
		s := stateOf(fields)
		o.retold[n] = why
		if o.need > 0 {
			o.recall(l, n, s, now, why)
		} else {
			o.compare(l, s, n, now)
			o.note(l, s, redis.Write{Node: n, NowUS: now})
		}
		o.mu.Unlock()
	}
	o.mu.Lock()
	delete(o.retold, n)
	o.mu.Unlock()
}
