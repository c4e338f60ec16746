// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// splitVotes is how long those who wait may split the votes of a lock that nobody has.
const splitVotes = 3 * time.Second

// auditMajority looks at a lock of several servers.
func (o *observer) auditMajority(l *lock, now time.Time, calm bool, from time.Time) {
	l.owner = o.leader(l, now)
	busy := l.owner != ""
	for _, h := range l.holders {
		if !h.released && h.alive() {
			o.checkVotes(l, h, 0)
			busy = true
		}
		busy = busy || h.minHold.After(now)
	}
	for _, v := range l.votes { // what lost tries could not give back keeps the lock together
		busy = busy || v.kept.After(now)
	}
	if busy {
		l.free = now
	}
	if !calm || from.After(now) {
		return
	}
	o.auditFree(l, now, from)
	for _, n := range slices.SortedFunc(maps.Keys(l.votes), func(a, b *redis.Node) int { return strings.Compare(a.Addr(), b.Addr()) }) {
		if v := l.votes[n].has; v.live(v.owner, now) {
			o.auditKept(l, v.owner, time.Time{}, now, from)
		}
	}
}

// leader is who has a majority of votes, "" if nobody has.
func (o *observer) leader(l *lock, now time.Time) string {
	for _, v := range l.votes {
		if owner := v.has.owner; v.has.live(owner, now) {
			if n, _ := o.count(l, owner, now); n >= o.need {
				return owner
			}
		}
	}
	return ""
}

// old is when the last server is old enough for the guard. Its memory begins when it is first asked.
func (o *observer) old() (at time.Time) {
	for _, began := range o.began {
		at = latest(at, began.Add(o.mix.guard))
	}
	return at
}
