// SPDX-License-Identifier: Apache-2.0

package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// Who has the vote of the first server asks for the others so often: others can be giving them back this
// moment. The pauses grow from a millisecond. As many rounds more can raise tokens.
const tries = 5

// acquire takes the lock if a majority gives it. Of those who come at once only the one that has the vote of
// the first server goes on, so they do not keep the lock from each other. Where rivals were met lately that
// one is asked before the others, and without its vote they are not.
func (s *servers) acquire(ctx context.Context, call fcall.Call) (fcall.Reply, error) {
	b, nth := s.ballots.open(call)
	began := time.Now()
	votes, first := make([]fcall.Reply, len(s.members)), s.first(call.Key)
	var lead fcall.Reply
	if s.rivals.near(call.Key, began) {
		var err error
		if lead, err = s.lead(ctx, b, votes); err != nil {
			return fcall.Reply{}, err
		}
		if lead.Holder != "" {
			return s.refuse(b, nth, lead), nil
		}
	}
	token := int64(0) // any
	for try := 1; ; try++ {
		p, err := s.round(ctx, b, votes, token)
		token = p.token()
		switch {
		case err != nil:
			return fcall.Reply{}, err
		case p.known():
			b.won(began)
			s.rivals.beaten(call.Key)
			return granted(token), nil
		case p.answered() < s.need:
			return fcall.Reply{}, fcall.Uncertain(p.failure()) // some may have voted
		case token != 0 && try < 2*tries: // it is not known to a majority yet
			continue
		case token != 0 && len(p.no) == 0:
			return fcall.Reply{}, errClocks
		case !lead.Yes && !votes[first].Yes || try >= tries:
			return s.refuse(b, nth, p.busy()), nil
		}
		if err := receive(ctx, s.closing, make(chan answer[any], 1), 0, time.Millisecond<<(try-1), sure, nil); err != nil {
			return fcall.Reply{}, err
		}
	}
}

// errClocks is for clocks that are a minute apart: no majority takes the token of one.
var errClocks = fmt.Errorf("%w: too few servers take the token of the others, their clocks are too far behind", fcall.ErrUnreachable)

// lead asks one server after another, until one gives its vote, which it notes, or says who has the lock.
// One that does not answer, or does not vote yet, has no say. An empty reply: nobody has one.
//
// That one server has the lock as somebody's is the last word, unless it has said so for long: a vote that
// was left behind there is in nobody's way. Then it takes as many as can keep a majority from having it.
func (s *servers) lead(ctx context.Context, b *ballot, votes []fcall.Reply) (said fcall.Reply, err error) {
	wanted := b.wanted()
	first, patience := s.first(wanted.Key), min(headStart, length(wanted.TTL)/headStartPart)
	answers := make(chan answer[fcall.Reply], len(s.members))
	refused, holder, place, decided := 0, "", wanted.Key+"\n", false // place: of this answer, behind others
	for k := 0; k < len(s.members) && !decided && err == nil; k++ {
		i := (first + k) % len(s.members)
		if s.members[i].silent(headStart) {
			continue
		}
		go func() { answers <- ask(ctx, s, i, b.vote(i, &wanted, nil)) }()
		err = receive(ctx, s.closing, answers, 0, patience, sure, func(a answer[fcall.Reply]) bool {
			switch r := a.value; {
			case a.err != nil || !r.Yes && r.Holder == "": // no say
			case r.Yes:
				votes[a.from], decided = r, true
			default:
				refused++
				decided = refused > len(s.members)-s.need || // or it moved, if that holder is new here too
					r.Holder != holder && s.rivals.met(place, r.Holder, time.Now())
				holder, place = r.Holder, place+"\n"+r.Holder
			}
			if decided {
				said = a.value
			}
			return decided || a.from == i
		})
	}
	return said, err
}

// round asks all for their votes that have not given them, and has those raise their token to this one
// that have a lower one. It waits for all: where they answer, the token in the middle is known to a
// majority, and nobody has to raise his.
func (s *servers) round(ctx context.Context, b *ballot, votes []fcall.Reply, token int64) (*poll, error) {
	p, silent, wanted := s.poll(), 0, b.wanted()
	answers := make(chan answer[fcall.Reply], len(votes))
	for i, vote := range votes {
		if vote.Yes && vote.Fence >= token {
			p.add(fcall.Outcome{Reply: vote})
			continue
		}
		call, had := &wanted, (*fcall.Reply)(nil)
		if vote.Yes {
			raise, kept := raising(wanted, token), vote
			call, had = &raise, &kept
		}
		votes[i] = fcall.Reply{}
		if s.members[i].silent(headStart) {
			silent++
		}
		go func() { answers <- ask(ctx, s, i, b.vote(i, call, had)) }()
	}
	open := func() time.Duration { return p.open(silent, min(deciding, length(wanted.TTL)/headStartPart)) }
	err := receive(ctx, s.closing, answers, s.need-len(p.yes), fellows, open, func(a answer[fcall.Reply]) bool {
		if a.err == nil && a.value.Yes {
			votes[a.from] = a.value
		}
		p.add(fcall.Outcome{Reply: a.value, Err: a.err})
		return p.decided() || p.left() <= silent && p.answered() >= s.need
	})
	return &p, err
}

func granted(token int64) fcall.Reply { return fcall.Reply{Yes: true, Fence: token, Top: token} }

// vote asks a server for its vote, or to raise the token of the one that it had given. One whose clock is too
// far behind keeps its own.
func (b *ballot) vote(i int, call *fcall.Call, had *fcall.Reply) func(context.Context, *fcall.Caller) (fcall.Reply, error) {
	return func(ctx context.Context, c *fcall.Caller) (r fcall.Reply, err error) {
		if had == nil && !b.asks(i) {
			return r, fcall.NotConnected(errOver)
		}
		sent := time.Now()
		r, err = c.Do(ctx, *call)
		b.heard(i, sent, *call, fcall.Outcome{Reply: r, Err: err})
		if had != nil && errors.Is(err, fcall.ErrArgument) {
			return *had, nil
		}
		return r, err
	}
}

var errOver = errors.New("the lock is given back")

// raising starts the lease anew with at least that token. A server can have a higher one of its own, so
// it names none.
func raising(call fcall.Call, token int64) fcall.Call {
	return fcall.Call{Verb: fcall.Renew, Key: call.Key, Owner: call.Owner, TTL: call.TTL, Raise: token}
}
