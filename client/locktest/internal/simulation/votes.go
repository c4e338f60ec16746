// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/integration/oracle"
)

// vote is what one of several servers gave to an owner.
type vote struct {
	owner string
	until time.Time    // when the lease can end there, by the local clock
	why   oracle.Cause // why the server does not have it any more
}

func (v vote) live(owner string, at time.Time) bool {
	return v.owner != "" && v.owner == owner && !v.until.Before(at)
}

// votes are those of one server for one lock.
type votes struct {
	has  vote
	had  []vote    // lost by faults, and their leases are not over
	kept time.Time // the end of a minimum
}

// covered reports whether a guard keeps a server from giving away what it has lost by that, as after a
// restart, while the lease lasts.
func covered(why oracle.Cause) bool { return why.Verdict(oracle.Quorum) == oracle.Nothing }

// lose notes that the server does not have its vote any more, by a fault.
func (v *votes) lose(now time.Time, why oracle.Cause) {
	if v.has.until.After(now) {
		lost := v.has
		lost.why = why
		v.had = append(v.had, lost)
	}
}

// get notes what the server has now. What it had of the same owner before is of no account.
func (v *votes) get(now time.Time, has vote) {
	v.has = has
	v.had = slices.DeleteFunc(v.had, func(lost vote) bool { return !lost.until.After(now) || lost.owner == has.owner })
}

// at is a server's part of the lock.
func (l *lock) at(n *redis.Node) *votes {
	if l.votes[n] == nil {
		l.votes[n] = &votes{}
	}
	return l.votes[n]
}

// count is how many servers vote for an owner at a time: have it, or give it to nobody else yet. If these
// are too few, and with those that have lost it by what the guarantees admit they are not, why is one
// of that.
func (o *observer) count(l *lock, owner string, at time.Time) (n int, why oracle.Cause) {
	admitted := 0
	for _, v := range l.votes {
		firm, lost := v.has.live(owner, at), oracle.None
		for _, had := range v.had {
			switch {
			case !had.live(owner, at):
			case covered(had.why):
				firm = true
			default:
				lost = had.why
			}
		}
		if firm {
			n++
		} else if lost != oracle.None {
			admitted++
			why = max(why, lost) // any, but the same for all orders
		}
	}
	if n >= o.need || n+admitted < o.need {
		why = oracle.None
	}
	return n, why
}

// voteOf is what a key says, as a vote.
func (o *observer) voteOf(n *redis.Node, s state, nowUS int64) vote {
	if !s.live(nowUS) {
		return vote{}
	}
	return vote{owner: s.owner, until: o.local(n, s.until, nowUS)}
}

// voted notes a write at one of several servers. o.mu is held.
func (o *observer) voted(l *lock, w redis.Write, before, after state, c redis.Call, called bool) {
	now, v := time.Now(), l.at(w.Node)
	v.kept = o.local(w.Node, after.kept, w.NowUS)
	if why := o.retold[w.Node]; why != "" {
		o.recall(l, w.Node, before, w.NowUS, why)
	}
	has := o.voteOf(w.Node, after, w.NowUS)
	if old := v.has.owner; old != has.owner {
		if why := o.takes(l, w.Node, c, called, old); why != "" {
			v.lose(now, why)
		} else if old == before.owner && before.live(w.NowUS+o.slack.Microseconds()) && !ended(c, called, old) {
			o.broken(l.name, 2, "%s ended the lease of %s %d ms early", w.Node.Addr(), old, before.until-w.NowUS/1000)
		}
		o.checkGuard(l, w.Node, v, has, now)
	}
	v.get(now, has)
}

// takes returns why a write takes a vote from its owner, if that is what the guarantees admit.
func (o *observer) takes(l *lock, n *redis.Node, c redis.Call, called bool, owner string) oracle.Cause {
	switch {
	case o.moving[l.name+"@"+n.Addr()]:
		return oracle.Deleted
	case !called:
	case c.Function == "holdfast_break":
		return oracle.Broken
	}
	return ""
}

// checkGuard looks whether a server votes for another while it may have forgotten somebody's vote.
func (o *observer) checkGuard(l *lock, n *redis.Node, v *votes, has vote, now time.Time) {
	if has.owner == "" {
		return
	}
	o.report.Count(Checks, "1 vote", 1)
	for _, lost := range v.had {
		if covered(lost.why) && lost.owner != has.owner && lost.until.After(now) {
			o.broken(l.name, 1, "%s votes for %s, and has forgotten that it had voted for %s, for %v more", n.Addr(), has.owner, lost.owner, lost.until.Sub(now))
		}
	}
}

// recall compares what a server has, after a fault of its memory or its clock, with what it had.
func (o *observer) recall(l *lock, n *redis.Node, s state, nowUS int64, why oracle.Cause) {
	now, v := time.Now(), l.at(n)
	has := o.voteOf(n, s, nowUS)
	if v.has.owner != has.owner && has.owner != "" {
		l.ghosts[has.owner] = true
	}
	if v.has.owner == has.owner && has.until.After(v.has.until.Add(-time.Millisecond)) {
		v.has = has
		return
	}
	v.lose(now, why) // also if it is the same owner's, but shorter
	v.has = has
}

// checkVotes looks whether a holder has the majority that it counts on, for so long.
func (o *observer) checkVotes(l *lock, h *holder, remaining time.Duration) {
	o.report.Count(Checks, "2 majority", 1)
	if n, why := o.count(l, h.owner, time.Now().Add(remaining)); n < o.need {
		o.unless(why, l.name, 2, "%s (%s, token %d) counts on %v, and %d servers have it for that long, of %d that must",
			h.who, h.owner, h.fence, remaining, n, o.need)
	}
}

// lostMajority returns what took a majority from a holder, None if nothing did.
func (o *observer) lostMajority(l *lock, h *holder) oracle.Cause {
	_, why := o.count(l, h.owner, time.Now())
	return why
}

// checkOrder looks at the token of a holder that enters.
func (o *observer) checkOrder(l *lock, h *holder) {
	o.report.Count(Checks, "3 token", 1)
	if h.fence > l.token {
		l.token, l.tokenOwner = h.fence, h.owner
	} else if h.fence < l.token || h.owner != l.tokenOwner {
		o.unless(o.lostMajority(l, h), l.name, 3, "%s (%s) enters with token %d, after %d of %s",
			h.who, h.owner, h.fence, l.token, l.tokenOwner)
	}
}
