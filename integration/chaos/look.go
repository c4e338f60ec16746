// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/integration/oracle"
)

// look is a holder's view of its lock. The holder asks again and again whether it is live, and
// tells when that is seen first and last. What was asked between two stamps was so at a moment
// between them, however long the process stood still there.
type look struct {
	*worker
	id   int64
	hold hold
	live func() bool
	over stamp // after the first look that did not find it live
	told stamp // 0: it was not entered
}

func (w *worker) look(id int64, start stamp, lock string, level oracle.Level, owner string, token int64,
	live func() bool) *look {
	return &look{worker: w, id: id, live: live, hold: hold{Who: fmt.Sprintf("%s.%d", w.Name, w.number), Lock: lock,
		Level: level, Owner: owner, Token: token, Start: start, End: forever, Why: "the process was killed"}}
}

// see looks. It returns false when the lock is over.
func (l *look) see() bool {
	if l.over != 0 {
		return false
	}
	before := now()
	live := l.live()
	after := now()
	if !live {
		l.over = after
		return false
	}
	l.hold.Last = before
	if l.told == 0 {
		l.hold.Enter = after
	}
	if l.told == 0 || after.Sub(l.told) > often {
		l.told = after
		l.say(message{ID: l.id, Hold: &l.hold})
	}
	return true
}

// leave ends the view: the lock is over from a moment on that is not later than at.
func (l *look) leave(at stamp, why string) {
	if l.over != 0 {
		at, why = l.over, "it was found lost; "+why
	}
	if l.told != 0 {
		l.hold.End, l.hold.Why = at, why
		l.say(message{ID: l.id, Hold: &l.hold})
	}
}

// stay looks for a while. It returns early when the lock is over.
func (l *look) stay(d time.Duration) bool {
	tick := time.NewTicker(min(max(d/4, time.Millisecond), 5*time.Millisecond))
	defer tick.Stop()
	end := time.After(d)
	for l.see() {
		select {
		case <-tick.C:
		case <-end:
			return l.see()
		case <-l.stopping.Done():
			return l.see()
		}
	}
	return false
}
