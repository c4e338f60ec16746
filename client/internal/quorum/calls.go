package quorum

import (
	"context"
	"maps"
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
		covers := b.tells(from)
		r, err := c.Release(ctx, key, owner, hold, last)
		switch {
		case err != nil && b.matters(from) && b.unanswered():
			s.late(key, owner)
		case err == nil && hold == "" && b.gone(from, covers):
			s.ballots.forget(owner)
		}
		return r, err
	})
	var p poll
	err := receive(ctx, s.closing, s, answers, n, func(a answer[fcall.Reply]) bool {
		p.add(a)
		return p.yes >= s.need || p.no > len(s.members)-s.need
	})
	switch {
	case err != nil:
		return fcall.Reply{}, err
	case p.yes >= s.need:
		return fcall.Reply{Yes: true}, nil
	case p.no > len(s.members)-s.need:
		return fcall.Reply{}, nil
	}
	return fcall.Reply{}, s.failure(p.yes+p.no, p.failed)
}

// Inspect asks a majority how the lock stands. An owner has it that may have it with a majority, as
// far as servers have answered. The line is that of the server that has it.
func (s *Servers) Inspect(ctx context.Context, key string) (fcall.Standing, error) {
	return s.standing(ctx, key, func(ctx context.Context, _ int, c *fcall.Caller) (fcall.Standing, error) {
		return c.Inspect(ctx, key)
	})
}

// InspectTracked is Inspect.
func (s *Servers) InspectTracked(ctx context.Context, key string) (fcall.Standing, error) {
	return s.Inspect(ctx, key)
}

// Break takes the lock from whoever has it, at all servers. It returns how the lock stood, as Inspect.
func (s *Servers) Break(ctx context.Context, key, reason string) (fcall.Standing, error) {
	return s.standing(ctx, key, func(ctx context.Context, _ int, c *fcall.Caller) (fcall.Standing, error) {
		return c.Break(ctx, key, reason)
	})
}

func (s *Servers) standing(ctx context.Context, key string, call func(context.Context, int, *fcall.Caller) (fcall.Standing, error)) (fcall.Standing, error) {
	got, err := gather(ctx, s, call)
	if err != nil {
		return fcall.Standing{}, err
	}
	standing := owned(slices.Collect(maps.Values(got)), s.need, len(s.members)-len(got))
	standing.Waiters = got[s.Line(key)].Waiters
	return s.ballots.known(standing), nil
}

// Forgotten reports whether a majority has the lock as one owner's, and the server that has the line
// does not; and how long that majority's lease lasts. It is false when that cannot be found out.
func (s *Servers) Forgotten(ctx context.Context, key string) (left time.Duration, forgotten bool) {
	got, err := gather(ctx, s, func(ctx context.Context, _ int, c *fcall.Caller) (fcall.Standing, error) {
		return c.Inspect(ctx, key)
	})
	there, answered := got[s.Line(key)]
	if err != nil || !answered {
		return 0, false
	}
	standing, _ := majority(slices.Collect(maps.Values(got)), s.need)
	return standing.Remaining, standing.Held && there.Owner != standing.Owner
}

// majority is how the lock stands with so many servers: held by one owner, with the lease that they
// all have; or held by nobody. agreed says that so many have answered.
func majority(standings []fcall.Standing, need int) (s fcall.Standing, agreed bool) {
	if len(standings) < need {
		return s, false
	}
	return owned(standings, need, 0), true
}

// owned is how the lock stands, if so many servers are needed for an owner and so many have not
// answered: those may have it as anybody's.
func owned(standings []fcall.Standing, need, silent int) (s fcall.Standing) {
	by, most := map[string][]fcall.Standing{}, ""
	for _, s := range standings {
		if s.Held {
			if by[s.Owner] = append(by[s.Owner], s); len(by[s.Owner]) > len(by[most]) {
				most = s.Owner
			}
		}
	}
	of := by[most]
	if len(of) == 0 || len(of)+silent < need {
		return s
	}
	left, fences := make([]time.Duration, len(of)), make([]int64, len(of))
	for i, one := range of {
		left[i], fences[i] = one.Remaining, one.Fence
	}
	// that of the majority: one that voted late can have a higher token, or a lower one
	return fcall.Standing{Held: true, Owner: most, Holds: 1,
		Remaining: nth(left, max(1, len(of)-need+1)), Fence: nth(fences, min(need, len(of)))}
}

// Version is the version of the library at a majority; if they differ, all of them.
func (s *Servers) Version(ctx context.Context) (string, error) {
	got, err := gather(ctx, s, func(ctx context.Context, _ int, c *fcall.Caller) (string, error) { return c.Version(ctx) })
	return strings.Join(slices.Compact(slices.Sorted(maps.Values(got))), ", "), err
}

// gather returns all answers that come in time, by server. It fails if those are not of a majority.
func gather[T any](ctx context.Context, s *Servers, call func(context.Context, int, *fcall.Caller) (T, error)) (map[int]T, error) {
	answers, n := ask(ctx, s, lasting, call)
	got := map[int]T{}
	var failed []error
	err := receive(ctx, s.closing, s, answers, n, func(a answer[T]) bool {
		if a.err != nil {
			failed = append(failed, a.err)
		} else {
			got[a.from] = a.value
		}
		return false
	})
	if err == nil && len(got) < s.need {
		err = s.failure(len(got), failed)
	}
	if err != nil {
		return nil, err
	}
	return got, nil
}

// poll counts the answers to a renewal or a release.
type poll struct {
	yes, no int
	refusal fcall.Reply // one of those that said no, if possible one that names a holder
	failed  []error
}

func (p *poll) add(a answer[fcall.Reply]) {
	switch {
	case a.err != nil:
		p.failed = append(p.failed, a.err)
	case a.value.Yes:
		p.yes++
	default:
		if p.no++; p.refusal.Holder == "" {
			p.refusal = a.value
		}
	}
}
