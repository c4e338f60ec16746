package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

const (
	// Who has the vote of the server that is asked first asks for the others so often: others can be
	// giving them back this moment. The pauses grow from a millisecond.
	tries = 5

	// By so much the token is proposed above the first server's clock, in microseconds: the others vote
	// a moment later, and their clocks differ. If it is too little, one more round raises it.
	ahead = 2000
)

// acquire takes the lock if a majority gives it. One server is asked first: without its vote nobody asks
// the others, so two that come at once do not keep the lock from each other.
func (s *servers) acquire(ctx context.Context, call fcall.Call) (fcall.Reply, error) {
	b, began := s.ballots.open(call, len(s.members)), time.Now()
	lead, err := s.lead(ctx, b, call)
	if err != nil {
		return fcall.Reply{}, err
	}
	if lead.Holder != "" {
		return s.refuse(call, b, lead), nil
	}
	token := int64(0) // any
	for try := 1; ; try++ {
		if lead.Yes && token == 0 {
			token = lead.Fence + time.Since(began).Microseconds() + ahead
		}
		p, err := s.round(ctx, b, call, token)
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

// lead asks one server after another, until one gives its vote, or says who has the lock. One that
// does not answer, or does not vote yet, has no say. An empty reply: nobody has one.
func (s *servers) lead(ctx context.Context, b *ballot, call fcall.Call) (fcall.Reply, error) {
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
		go func() { answers <- askOne(ctx, s, length(call.TTL), i, vote(b, call, 0)) }()
		timer.Reset(patience)
		for waiting := true; waiting; {
			select {
			case a := <-answers:
				if a.err == nil && l.decides(a.value) {
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

// round asks all for their votes, with a token that they shall have; 0: any.
func (s *servers) round(ctx context.Context, b *ballot, call fcall.Call, token int64) (*poll, error) {
	p := s.poll()
	answers := ask(ctx, s, length(call.TTL), vote(b, call, token))
	return &p, receive(ctx, s.closing, s, answers, func(a answer[fcall.Reply]) bool {
		p.add(fcall.Outcome{Reply: a.value, Err: a.err})
		return p.decided()
	})
}

func granted(token int64) fcall.Reply { return fcall.Reply{Yes: true, Fence: token, Top: token} }

// vote asks one server for its vote, and has it raise its token.
func vote(b *ballot, call fcall.Call, token int64) calling[fcall.Reply] {
	calls := []fcall.Call{{Verb: fcall.Acquire, Key: call.Key, Owner: call.Owner, TTL: call.TTL, Guard: call.Guard, MinHold: call.MinHold}}
	if token != 0 {
		calls = append(calls, raising(call, token))
	}
	return func(ctx context.Context, i int, c *fcall.Caller) (fcall.Reply, error) {
		if !b.asks(i) {
			return fcall.Reply{}, fcall.NotConnected(errOver)
		}
		sent := time.Now()
		said := c.Send(ctx, calls)
		b.answered(i, sent, said[0])
		o := counted(said)
		return o.Reply, o.Err
	}
}

var errOver = errors.New("the lock is given back")

// counted is the vote in a server's answers. One whose clock is too far behind keeps its own token.
func counted(said []fcall.Outcome) fcall.Outcome {
	taken, raised := said[0], said[len(said)-1]
	if taken.Err != nil || !taken.Yes || refused(raised.Err) {
		return taken
	}
	return raised
}

// raising starts the lease anew with at least that token. A server can have a higher one of its own, so
// it names none.
func raising(call fcall.Call, token int64) fcall.Call {
	return fcall.Call{Verb: fcall.Renew, Key: call.Key, Owner: call.Owner, TTL: call.TTL, Raise: token}
}

// refused reports whether a server's clock is too far behind for a token.
func refused(err error) bool { return errors.Is(err, fcall.ErrArgument) }
