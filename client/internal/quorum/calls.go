package quorum

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// lasting is what a call of a human may take.
const lasting = 10 * time.Second

// Renew starts the lease anew if a majority says yes.
func (s *Servers) Renew(ctx context.Context, copies fcall.Copies, key string, r fcall.Renewal) (fcall.Reply, error) {
	b := s.NewBatch(1, copies)
	b.Renew(false, key, r)
	o := b.Send(ctx)[0]
	return o.Reply, interrupted(ctx, o.Err)
}

// interrupted is the error of a call that its context has ended.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Release gives the lock back. It returns when a majority has heard of it; what has not is told in
// the background, but not with a hold, which means that it is not the holder who releases: if that
// fails, the holder goes on.
func (s *Servers) Release(ctx context.Context, key, owner, hold string, last int64) (fcall.Reply, error) {
	b := newBallot(owner, len(s.members)) // it matters nowhere
	if hold == "" {
		b = s.ballots.release(owner)
		defer func() {
			if b.went() {
				s.late(key, owner)
			}
		}()
	}
	answers, n := ask(ctx, s, lasting, func(ctx context.Context, from int, c *fcall.Caller) (fcall.Reply, error) {
		r, err := c.Release(ctx, key, owner, hold, last)
		switch {
		case err != nil && b.matters(from) && b.unanswered():
			s.late(key, owner)
		case err == nil && hold == "" && b.gone(from):
			s.ballots.forget(owner)
		}
		return r, err
	})
	yes, no := 0, 0
	var failed []error
	err := receive(ctx, s.closing, s, answers, n, func(a answer[fcall.Reply]) bool {
		switch {
		case a.err != nil:
			failed = append(failed, a.err)
		case a.value.Yes:
			yes++
		default:
			no++
		}
		return yes >= s.need || no > len(s.members)-s.need
	})
	switch {
	case err != nil:
		return fcall.Reply{}, err
	case yes >= s.need:
		return fcall.Reply{Yes: true}, nil
	case no > len(s.members)-s.need:
		return fcall.Reply{}, nil
	}
	return fcall.Reply{}, s.failure(yes+no, failed)
}

// Inspect asks how the lock stands with a majority. The line is that of the server that has it.
func (s *Servers) Inspect(ctx context.Context, key string) (fcall.Standing, error) {
	return s.standing(ctx, key, func(ctx context.Context, _ int, c *fcall.Caller) (fcall.Standing, error) {
		return c.Inspect(ctx, key)
	})
}

// InspectTracked is Inspect.
func (s *Servers) InspectTracked(ctx context.Context, key string) (fcall.Standing, error) {
	return s.Inspect(ctx, key)
}

// Break takes the lock from whoever has it, at all servers. It returns who had it with a majority.
func (s *Servers) Break(ctx context.Context, key, reason string) (fcall.Standing, error) {
	return s.standing(ctx, key, func(ctx context.Context, _ int, c *fcall.Caller) (fcall.Standing, error) {
		return c.Break(ctx, key, reason)
	})
}

func (s *Servers) standing(ctx context.Context, key string, call func(context.Context, int, *fcall.Caller) (fcall.Standing, error)) (fcall.Standing, error) {
	answers, n := ask(ctx, s, lasting, call)
	var got []fcall.Standing
	var failed []error
	line, waiters := s.Line(key), int64(0)
	err := receive(ctx, s.closing, s, answers, n, func(a answer[fcall.Standing]) bool {
		if a.err != nil {
			failed = append(failed, a.err)
			return false
		}
		if got = append(got, a.value); a.from == line {
			waiters = a.value.Waiters
		}
		return false // all that come in time: a break is for all servers
	})
	if err != nil {
		return fcall.Standing{}, err
	}
	if len(got) < s.need {
		return fcall.Standing{}, s.failure(len(got), failed)
	}
	standing, _ := majority(got, s.need)
	standing.Waiters = waiters
	return s.ballots.known(standing), nil
}

// Forgotten reports whether a majority has the lock as one owner's, and the server that has the line
// does not; and how long that majority's lease lasts. It is false when that cannot be found out.
func (s *Servers) Forgotten(ctx context.Context, key string) (left time.Duration, forgotten bool) {
	answers, n := ask(ctx, s, lasting, func(ctx context.Context, _ int, c *fcall.Caller) (fcall.Standing, error) {
		return c.Inspect(ctx, key)
	})
	var got []fcall.Standing
	var there *fcall.Standing // at the server that has the line
	line := s.Line(key)
	err := receive(ctx, s.closing, s, answers, n, func(a answer[fcall.Standing]) bool {
		if a.err == nil {
			got = append(got, a.value)
			if a.from == line {
				there = &a.value
			}
		}
		return false
	})
	if err != nil || there == nil {
		return 0, false
	}
	standing, _ := majority(got, s.need)
	return standing.Remaining, standing.Held && there.Owner != standing.Owner
}

// majority is how the lock stands with so many servers: held by one owner, with the lease that they
// all have; or held by nobody. agreed says that so many have answered.
func majority(standings []fcall.Standing, need int) (s fcall.Standing, agreed bool) {
	if len(standings) < need {
		return s, false
	}
	by := map[string][]fcall.Standing{}
	for _, s := range standings {
		if s.Held {
			by[s.Owner] = append(by[s.Owner], s)
		}
	}
	for owner, of := range by {
		if len(of) < need {
			continue
		}
		s = fcall.Standing{Held: true, Owner: owner, Holds: 1}
		left, fences := make([]time.Duration, len(of)), make([]int64, len(of))
		for i, one := range of {
			left[i], fences[i] = one.Remaining, one.Fence
		}
		// that of the majority: one that voted late can have a higher token, or a lower one
		s.Remaining, s.Fence = nth(left, len(left)-need+1), nth(fences, need)
		return s, true
	}
	return s, true
}

// Version is the version of the library at a majority; if they differ, all of them.
func (s *Servers) Version(ctx context.Context) (string, error) {
	answers, n := ask(ctx, s, lasting, func(ctx context.Context, _ int, c *fcall.Caller) (string, error) { return c.Version(ctx) })
	var versions []string
	var failed []error
	err := receive(ctx, s.closing, s, answers, n, func(a answer[string]) bool {
		if a.err != nil {
			failed = append(failed, a.err)
		} else {
			versions = append(versions, a.value)
		}
		return false
	})
	switch {
	case err != nil:
		return "", err
	case len(versions) < s.need:
		return "", s.failure(len(versions), failed)
	}
	slices.Sort(versions)
	return strings.Join(slices.Compact(versions), ", "), nil
}
