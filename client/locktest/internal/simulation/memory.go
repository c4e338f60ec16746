// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/integration/oracle"
)

// compare looks what a primary has forgotten, compared with the one before it or with itself before
// a restart.
func (o *observer) compare(l *lock, t *term, s state, n *redis.Node, nowUS int64) {
	until := time.Now().Add(time.Duration(s.until*1000-nowUS) * time.Microsecond)
	live := s.live(nowUS)
	if t.owner != "" && (!live || s.owner != t.owner || s.fence != t.fence || until.Before(t.until.Add(-time.Millisecond))) {
		why := o.retold[n]
		if (why == nothingLost || l.level) && o.skewed && (s.owner == t.owner && s.fence == t.fence || !live) {
			why = oracle.Differ
			l.lose(everybody, why) // also who asked the one, and is granted the lock by the other
		}
		o.forget(l, t, why)
	}
	if live && s.owner != t.owner {
		l.ghosts[s.owner] = true
	}
}

func (o *observer) forget(l *lock, t *term, why oracle.Cause) {
	if why == nothingLost {
		o.broken(l.name, 1, "%s had it before, and does not any more", t.owner)
	}
	l.lose(t.owner, why)
	if l.level && why == oracle.Unreplicated && l.stranded { // also if all replicas had it of the server that it came from
		l.lose(t.owner, oracle.Stranded)
	}
	o.history.add(l.name, "server", "%s lost it: %s", t.owner, why)
	t.owner = ""
	l.free = time.Now()
	t.gen++
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
		all := statesOf(fields)
		o.retold[n] = why
		if why != nothingLost || o.skewed {
			l.good = nil
		}
		slots := max(len(all), len(l.terms))
		if o.need > 0 {
			o.recall(l, n, all[0], now, why)
			slots = 0
		}
		for slot := range slots {
			t, s := l.slot(slot), nth(all, slot)
			o.compare(l, t, s, n, now)
			o.note(l, t, s, redis.Write{Node: n, NowUS: now})
		}
		_, l.head = lineOf(fields)
		o.mu.Unlock()
	}
	o.mu.Lock()
	delete(o.retold, n)
	o.mu.Unlock()
}
