package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// tally counts the votes of one round.
type tally struct {
	servers, need int
	line          int // the server whose no decides; -1: none
	yes           []vote
	no            []fcall.Reply
	turned        *fcall.Reply // the line's server said no
	ruled         bool         // it has answered, or cannot
	leads         bool         // it said yes
	limit         int64        // tokens above are of clocks that are far ahead
	failed        []error
}

func (s *Servers) newTally(line int) *tally {
	return &tally{servers: len(s.members), need: s.need, line: line, ruled: line < 0, limit: time.Now().UnixMicro() + ahead}
}

// vote is a server's, with its token.
type vote struct {
	from  int
	fence int64
}

func (t *tally) add(a answer[fcall.Reply]) {
	t.ruled = t.ruled || a.from == t.line
	switch {
	case a.err != nil:
		t.failed = append(t.failed, a.err)
	case a.value.Yes:
		t.yes = append(t.yes, vote{a.from, a.value.Fence})
		t.leads = t.leads || a.from == t.line
	default:
		t.no = append(t.no, a.value)
		if a.from == t.line && a.value.Holder != "" { // one that has forgotten has no line either
			t.turned = &a.value
		}
	}
}

// ahead is how far a server's tokens may be ahead of this process's clock, in microseconds, to count
// at once. It is less than what holdfast_raise refuses to raise to.
const ahead = 50_000_000

// won reports whether a majority has voted, not counting servers whose clocks seem to be far ahead: a
// token of theirs could not be raised to elsewhere.
func (t *tally) won() bool {
	sound := 0
	for _, v := range t.yes {
		if v.fence <= t.limit {
			sound++
		}
	}
	return sound >= t.need
}

// decided reports whether further answers change nothing. A lock is busy if a majority can say so.
func (t *tally) decided() bool {
	spare := t.servers - t.need
	lost := len(t.no)+len(t.failed) > spare && len(t.yes)+len(t.no) >= t.need
	return len(t.failed) > spare || t.ruled && (lost || t.won())
}

// fences are the tokens that the holder can have, the best first: each is the highest of a majority of
// votes. Of two majorities, the later one has a server that was raised to the token of the earlier one,
// and counts its vote: so its own token is higher.
func (t *tally) fences() (all []int64) {
	for _, v := range t.yes {
		all = append(all, v.fence)
	}
	slices.Sort(all)
	if len(all) < t.need {
		return nil
	}
	all = slices.Compact(all[t.need-1:])
	slices.Reverse(all)
	sound := slices.IndexFunc(all, func(fence int64) bool { return fence <= t.limit })
	return all[max(0, sound):] // none: it is this process's clock that is wrong
}

// error is why a round is no answer, or nil.
func (s *Servers) error(t *tally) error {
	if answered := len(t.yes) + len(t.no); answered < s.need {
		return s.failure(answered, t.failed)
	}
	return nil
}

// busy is the answer of a round that was not won.
func (t *tally) busy() fcall.Reply {
	var closed []time.Duration
	for _, r := range t.no {
		if r.Holder != "" {
			return r
		}
		closed = append(closed, r.Remaining)
	}
	// until a majority grants
	return fcall.Reply{Remaining: nth(closed, max(1, t.need-len(t.yes)))}
}

// tries is how often who has the vote of the line's server asks for those of the others, which others
// that tried at the same moment are giving back.
const tries = 5

// Acquire takes the lock if a majority gives it, and the server that has its line, if that one can
// say. The token is one that a majority has. What it got of a lock that it did not get is the
// caller's to give back, by Leave, and the owner is then used up.
func (s *Servers) Acquire(ctx context.Context, _ fcall.Copies, key string, r fcall.Request) (fcall.Reply, error) {
	b := s.ballots.open(r)
	for try := 1; ; try++ {
		t := s.newTally(s.Line(key))
		if err := s.collect(ctx, b, key, r, t); err != nil {
			return fcall.Reply{}, err
		}
		switch err := s.error(t); {
		case t.turned != nil && (len(t.yes) < s.need || !s.doubts.of(key, t.turned.Holder)):
			return *t.turned, nil
		case len(t.yes) >= s.need:
			reply, err := s.elect(ctx, key, r, t)
			if refused(err) && len(t.no) > 0 { // those that are busy have the right time
				return t.busy(), nil
			}
			if err != nil || reply.Yes || reply.Holder != "" || try == tries {
				return reply, missing(err)
			}
		case err != nil:
			return fcall.Reply{}, err
		case !t.leads || try == tries: // a majority of one other may be about to be given back too
			return t.busy(), nil
		}
		if err := s.pause(ctx, time.Millisecond<<(try-1)); err != nil {
			return fcall.Reply{}, err
		}
	}
}

func (s *Servers) pause(ctx context.Context, d time.Duration) error {
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

// AcquireTracked is Acquire: no server alone knows when the lock is free.
func (s *Servers) AcquireTracked(ctx context.Context, key string, r fcall.Request) (fcall.Reply, error) {
	return s.Acquire(ctx, fcall.Copies{}, key, r)
}

// collect asks for votes until they decide.
func (s *Servers) collect(ctx context.Context, b *ballot, key string, r fcall.Request, t *tally, skip ...int) error {
	answers, n := ask(ctx, s, length(r.TTL), func(ctx context.Context, i int, c *fcall.Caller) (fcall.Reply, error) {
		return s.vote(i, b, key, false, func() (fcall.Reply, error) { return c.Acquire(ctx, fcall.Copies{}, key, r) })
	}, skip...)
	return receive(ctx, s.closing, s, answers, n, func(a answer[fcall.Reply]) bool {
		t.add(a)
		return t.decided()
	})
}

// vote asks one server. A vote that nobody wants any more is given back. With lined, a no is a place in
// line, which is to be given back too.
func (s *Servers) vote(from int, b *ballot, key string, lined bool, request func() (fcall.Reply, error)) (fcall.Reply, error) {
	before, sent := b.asked(from) || lined, time.Now()
	r, err := request()
	if b.answered(from, before, sent, r, err) {
		s.late(key, b.owner)
	}
	return r, err
}

// elect makes the highest token that can be known to a majority the holder's.
func (s *Servers) elect(ctx context.Context, key string, r fcall.Request, t *tally) (reply fcall.Reply, err error) {
	for _, fence := range t.fences() {
		reply, err = s.raise(ctx, key, r, fence)
		if !refused(err) {
			break
		}
	}
	return reply, err
}

// raise makes fence the token at a majority. Those that have voted late are among those that it asks. The
// reply is a no if no majority has the lock for the owner any more.
func (s *Servers) raise(ctx context.Context, key string, r fcall.Request, fence int64) (fcall.Reply, error) {
	wanted, b := fcall.Renewal{Owner: r.Owner, TTL: r.TTL, Fence: fence}, s.ballots.open(r)
	answers, n := ask(ctx, s, length(r.TTL), func(ctx context.Context, from int, c *fcall.Caller) (fcall.Reply, error) {
		sent := time.Now()
		reply, err := c.Raise(ctx, key, wanted)
		b.renewed(from, sent, r.TTL, err == nil && reply.Yes)
		return reply, err
	})
	var p poll
	err := receive(ctx, s.closing, s, answers, n, func(a answer[fcall.Reply]) bool {
		p.add(a)
		return p.yes >= s.need || p.no+len(p.failed) > len(s.members)-s.need
	})
	switch {
	case err != nil:
		return fcall.Reply{}, err
	case p.yes >= s.need:
		b.won(fence)
		return fcall.Reply{Yes: true, Fence: fence, Holds: 1, Block: 1}, nil
	case slices.ContainsFunc(p.failed, refused) && p.refusal.Holder != "": // of the servers with the right time
		return p.refusal, nil
	case slices.ContainsFunc(p.failed, refused):
		return fcall.Reply{}, p.failed[slices.IndexFunc(p.failed, refused)]
	case p.no > len(s.members)-s.need: // it was broken meanwhile, or its lease is over
		return p.refusal, nil
	case p.yes+p.no >= s.need:
		return fcall.Reply{}, fmt.Errorf("%w: only %d of %d servers still had the lock in the second round, and %d must", fcall.ErrUnreachable, p.yes, len(s.members), s.need)
	}
	return fcall.Reply{}, s.failure(p.yes+p.no, p.failed)
}

// refused reports whether a server's clock is too far behind for a token.
func refused(err error) bool { return errors.Is(err, fcall.ErrArgument) }

// missing makes a refusal one vote that is missing: what was refused is the token of other servers, and
// nothing that the caller chose.
func missing(err error) error {
	if refused(err) {
		return fmt.Errorf("%w: too few servers take the token: %v", fcall.ErrUnreachable, err)
	}
	return err
}

// patience is for the server that has the line, as a part of the lease, and at most.
const (
	patiencePart = 8
	patienceMost = 500 * time.Millisecond
)

// Wait stands in the line, at the server that has it. When that one says that it is the owner's
// turn, it collects the votes of the others. If they are not enough yet, the reply says so by Again:
// the owner keeps its turn, and the votes that it has.
//
// Errors: ErrNoLine, ErrForgotten, and as Acquire.
func (s *Servers) Wait(ctx context.Context, key string, r fcall.Request) (fcall.Reply, error) {
	b, line := s.ballots.open(r), s.Line(key)
	turn, err := s.queue(ctx, b, line, key, r)
	switch {
	case err != nil:
		return turn, err
	case !turn.Yes && b.elsewhere(line, time.Now()):
		return turn, noLine(errors.New("the owner has lost its turn, and has votes that the next one needs"))
	case !turn.Yes && turn.Waiters == 1 && b.waitsAgain() && s.free(ctx, key) && s.doubts.of(key, turn.Holder):
		return turn, noLine(fmt.Errorf("it has the lock as %q's, who has it nowhere else", turn.Holder))
	case !turn.Yes:
		return turn, nil
	}
	r.Channel, r.MaxWait = "", 0
	t := s.newTally(-1)
	t.yes = []vote{{line, turn.Fence}}
	if err := s.collect(ctx, b, key, r, t, line); err != nil {
		return fcall.Reply{}, err
	}
	busy := t.busy()
	if len(t.yes) >= s.need {
		if busy, err = s.elect(ctx, key, r, t); err != nil || busy.Yes {
			return busy, missing(err)
		}
	}
	if err := s.error(t); err != nil {
		return fcall.Reply{}, err
	}
	again, patient := b.again()
	if !patient && t.others() {
		return fcall.Reply{}, ErrForgotten
	}
	busy.Waiters, busy.Again = 1, again
	return busy, nil
}

// others reports whether a majority has the lock as one other's.
func (t *tally) others() bool {
	votes := map[string]int{}
	for _, r := range t.no {
		if votes[r.Holder]++; r.Holder != "" && votes[r.Holder] >= t.need {
			return true
		}
	}
	return false
}

// queue asks the server that has the line.
func (s *Servers) queue(ctx context.Context, b *ballot, line int, key string, r fcall.Request) (fcall.Reply, error) {
	c, err := s.members[line]()
	if err != nil {
		return fcall.Reply{}, noLine(err)
	}
	short, cancel := context.WithTimeout(ctx, min(length(r.TTL)/patiencePart, patienceMost))
	defer cancel()
	reply, err := s.vote(line, b, key, true, func() (fcall.Reply, error) { return c.Wait(short, key, r) })
	switch {
	case ctx.Err() != nil:
		return reply, err
	case err != nil && (short.Err() != nil || errors.Is(err, fcall.ErrUnreachable) || errors.Is(err, fcall.ErrLibrary)):
		return reply, noLine(err)
	case err == nil && !reply.Yes && reply.Holder == "":
		return reply, noLine(fmt.Errorf("it grants nothing for %v", reply.Remaining))
	}
	return reply, err
}

// free reports whether a majority answers, and nobody has the lock with one.
func (s *Servers) free(ctx context.Context, key string) bool {
	standing, err := s.Inspect(ctx, key)
	return err == nil && !standing.Held
}

func noLine(err error) error { return fmt.Errorf("%w: %v", ErrNoLine, err) }
