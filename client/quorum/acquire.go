package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// Who has the vote of the server that is asked first asks for the others so often: others can be giving
// them back this moment. The pauses grow from a millisecond.
const tries = 5

// acquire takes the lock if a majority gives it. One server is asked first: without its vote nobody asks
// the others, so two that come at once do not keep the lock from each other.
func (s *servers) acquire(ctx context.Context, call fcall.Call) (fcall.Reply, error) {
	b, began := s.ballots.open(call, len(s.members)), time.Now()
	votes := make([]fcall.Reply, len(s.members))
	lead, err := s.lead(ctx, b, call, votes)
	if err != nil {
		return fcall.Reply{}, err
	}
	if lead.Holder != "" {
		return s.refuse(call, b, lead), nil
	}
	token := int64(0) // any
	for try := 1; ; try++ {
		p, err := s.round(ctx, b, call, votes, token)
		token = p.token()
		switch {
		case err != nil:
			return fcall.Reply{}, err
		case p.known():
			b.won(token, began)
			s.rivals.gone(call.Key)
			return granted(token), nil
		case p.answered() < s.need:
			return fcall.Reply{}, p.failure()
		case token != 0 && try < tries: // it is not known to a majority yet
			continue
		case token != 0 && len(p.no) == 0:
			return fcall.Reply{}, errClocks
		case !lead.Yes || try == tries:
			r := p.busy()
			s.rivals.met(call.Key, r.Holder, time.Now())
			return s.refuse(call, b, r), nil
		}
		if err := s.pause(ctx, time.Millisecond<<(try-1)); err != nil {
			return fcall.Reply{}, err
		}
	}
}

// errClocks is for clocks that are a minute apart: no majority takes the token of one.
var errClocks = fmt.Errorf("%w: too few servers take the token of the others, their clocks are too far behind", fcall.ErrUnreachable)

// lead asks one server after another, until one gives its vote, which it notes, or says who has the lock.
// One that does not answer, or does not vote yet, has no say. An empty reply: nobody has one.
func (s *servers) lead(ctx context.Context, b *ballot, call fcall.Call, votes []fcall.Reply) (fcall.Reply, error) {
	l := leading{servers: s, call: call}
	answers := make(chan answer[fcall.Reply], len(s.members))
	first, patience := s.first(call.Key), min(headStart, length(call.TTL)/headStartPart)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for k := range s.members {
		i := (first + k) % len(s.members)
		if m := s.members[i]; m.caller.Load() == nil || m.silent(headStart) {
			continue
		}
		go func() { answers <- askOne(ctx, s, length(call.TTL), i, vote(b, call)) }()
		timer.Reset(patience)
		for waiting := true; waiting; {
			select {
			case a := <-answers:
				if a.err == nil && l.decides(a.value) {
					if a.value.Yes {
						votes[a.from] = a.value
					}
					return a.value, nil
				}
				waiting = a.from != i
			case <-timer.C:
				waiting = false
			case <-ctx.Done():
				return fcall.Reply{}, ctx.Err()
			case <-s.closing.Done():
				return fcall.Reply{}, context.Cause(s.closing)
			}
		}
	}
	return fcall.Reply{}, nil
}

// leading is what those say who are asked first.
type leading struct {
	*servers
	call    fcall.Call
	refused int
	holder  string // of the first refusal
}

// decides reports whether an answer is the last word. That one server has the lock as somebody's is,
// unless it has said so for long: a vote that was left behind there is in nobody's way. Then it takes
// as many as can keep a majority from having it.
func (l *leading) decides(r fcall.Reply) bool {
	if r.Yes || r.Holder == "" { // without a holder it does not vote yet
		return r.Yes
	}
	if l.refused++; l.refused == 1 {
		l.holder = r.Holder
		return l.rivals.met(l.call.Key, r.Holder, time.Now())
	}
	return r.Holder != l.holder || l.refused > len(l.members)-l.need
}

func (s *servers) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing.Done():
		return context.Cause(s.closing)
	}
}

// round asks all for their votes that have not given them, and has those raise their token to this one
// that have a lower one. It waits for all: where they answer, the token in the middle is known to a
// majority, and nobody has to raise his.
func (s *servers) round(ctx context.Context, b *ballot, call fcall.Call, votes []fcall.Reply, token int64) (*poll, error) {
	p, asked, silent := s.poll(), map[int]calling[fcall.Reply]{}, 0
	for i, had := range votes {
		switch {
		case had.Yes && had.Fence >= token:
			p.add(fcall.Outcome{Reply: had})
			continue
		case had.Yes:
			asked[i] = raise(b, call, had, token)
		default:
			asked[i] = vote(b, call)
		}
		if votes[i] = (fcall.Reply{}); s.members[i].silent(headStart) {
			silent++
		}
	}
	answers := make(chan answer[fcall.Reply], len(asked))
	for i, what := range asked {
		go func() { answers <- askOne(ctx, s, length(call.TTL), i, what) }()
	}
	left := len(asked) - silent
	err := receive(ctx, s.closing, answers, s.need-len(p.yes), fellows, func(a answer[fcall.Reply]) bool {
		if left--; a.err == nil && a.value.Yes {
			votes[a.from] = a.value
		}
		p.add(fcall.Outcome{Reply: a.value, Err: a.err})
		return p.decided() || left <= 0 && p.answered() >= s.need
	})
	return &p, err
}

func granted(token int64) fcall.Reply { return fcall.Reply{Yes: true, Fence: token, Top: token} }

// vote asks one server for its vote.
func vote(b *ballot, call fcall.Call) calling[fcall.Reply] {
	call = fcall.Call{Verb: fcall.Acquire, Key: call.Key, Owner: call.Owner, TTL: call.TTL, Guard: call.Guard, MinHold: call.MinHold}
	return func(ctx context.Context, i int, c *fcall.Caller) (o fcall.Reply, err error) {
		if !b.asks(i) {
			return o, fcall.NotConnected(errOver)
		}
		sent := time.Now()
		o, err = c.Do(ctx, call)
		b.answered(i, sent, fcall.Outcome{Reply: o, Err: err})
		return o, err
	}
}

var errOver = errors.New("the lock is given back")

// raise has a server that has voted raise its token. One whose clock is too far behind keeps its own.
func raise(b *ballot, call fcall.Call, had fcall.Reply, token int64) calling[fcall.Reply] {
	return func(ctx context.Context, i int, c *fcall.Caller) (fcall.Reply, error) {
		sent := time.Now()
		r, err := c.Do(ctx, raising(call, token))
		if b.renewed(i, sent, call.TTL, err == nil && r.Yes); errors.Is(err, fcall.ErrArgument) {
			return had, nil
		}
		return r, err
	}
}

// raising starts the lease anew with at least that token. A server can have a higher one of its own, so
// it names none.
func raising(call fcall.Call, token int64) fcall.Call {
	return fcall.Call{Verb: fcall.Renew, Key: call.Key, Owner: call.Owner, TTL: call.TTL, Raise: token}
}
