// Package quorum asks several independent servers for one lock, as if they were one: a majority
// decides. Two majorities have a server in common, and one server gives a lock to one owner at a
// time. The algorithm is that of Redlock
// (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/), with three changes:
//
//   - A server that forgot what it had granted does not vote until the leases that it may have
//     forgotten are over (the guard of functions/README.md).
//   - A second round raises the token of the lock on a majority before the holder gets it. So tokens
//     grow from holder to holder, whatever the clocks of the servers say; but a server that loses its
//     memory has only its clock, and Guard, to be above the tokens that it forgot.
//   - There is a line, at one server for each lock. Whoever that server grants the lock has its turn,
//     and the votes of the others to collect.
//
// An owner string is for one lock, once: it is never used again after it was given back. So a giving
// back can be repeated at any time, and late votes can be.
package quorum

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// ErrNoLine is the error of Wait when the server that has the line does not answer, or has forgotten
// too much to grant anything yet, or has taken the turn from an owner that has votes of others. The
// owner is to be given up, and another one to try again.
var ErrNoLine = fcall.NewKind("the server that has the line cannot be waited at", fcall.ErrUnreachable)

// ErrForgotten is the ErrNoLine of an owner that has its turn while another one has the lock with a
// majority: the server that has the line was restarted, or was not there, and does not know. Its vote
// is the holder's, who asks for it at each renewal. So the turn is given back, and not asked for again
// until the server knows: see Forgotten.
var ErrForgotten = fcall.NewKind("the server that has the line has forgotten who has the lock", ErrNoLine)

// ErrOwing is the error of a giving back that has not reached all servers that it concerns. It is to be
// repeated; nobody waits for it.
var ErrOwing = fcall.NewKind("not given back everywhere yet", fcall.ErrUnreachable)

// Member returns the caller of one server, or why there is none yet.
type Member func() (*fcall.Caller, error)

// Servers are what a lock is asked for. It is safe for concurrent use.
type Servers struct {
	members []Member
	need    int
	closing context.Context // ends the calls that somebody waits for, by its cause
	done    context.Context // ends the rest: Close
	close   context.CancelFunc
	ballots ballots
	doubts  doubts
	flying  []atomic.Int64 // calls of each server under way
	late    func(key, owner string)
}

// New returns Servers. closing ends all calls, by its cause. late is told of an owner that may have
// got a vote after it had given up: what it has is to be given back once more.
func New(members []Member, closing context.Context, late func(key, owner string)) *Servers {
	s := &Servers{members: members, need: len(members)/2 + 1, closing: closing, late: late, ballots: newBallots(len(members)), doubts: doubts{about: map[string]doubt{}},
		flying: make([]atomic.Int64, len(members))}
	s.done, s.close = context.WithCancel(context.Background())
	return s
}

// Close ends what goes on in the background, and batches.
func (s *Servers) Close() { s.close() }

// Line is the server that has the line of a key.
func (s *Servers) Line(key string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return int(h.Sum32() % uint32(len(s.members)))
}

// answer is what a server said, or why it did not.
type answer[T any] struct {
	from  int
	value T
	err   error
}

// ask calls all servers at once but those in skip. Each call has so long, whether or not anybody
// waits for it still: what a slow server says late has its consequences too.
func ask[T any](ctx context.Context, s *Servers, limit time.Duration, call func(context.Context, int, *fcall.Caller) (T, error), skip ...int) (answers chan answer[T], n int) {
	answers = make(chan answer[T], len(s.members))
	for i, member := range s.members {
		if len(skip) > 0 && skip[0] == i {
			continue
		}
		n++
		go func() {
			a := answer[T]{from: i}
			c, err := s.reach(i, member)
			if a.err = err; err == nil {
				defer s.flying[i].Add(-1)
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
				defer cancel()
				defer context.AfterFunc(s.done, cancel)()
				a.value, a.err = call(ctx, i, c)
			}
			answers <- a
		}()
	}
	return answers, n
}

// What is asked of a server that does not answer. More is not sent: calls would pile up, each with its
// goroutines, for as long as rueidis waits.
const (
	unheard   = time.Second
	unheardOf = 128
)

// reach returns the caller of a server for one more call.
func (s *Servers) reach(i int, member Member) (*fcall.Caller, error) {
	c, err := member()
	if err != nil {
		return nil, err
	}
	if s.flying[i].Add(1) > unheardOf && c.Silent() > unheard {
		s.flying[i].Add(-1)
		return nil, fcall.NotConnected(errSilent)
	}
	return c, nil
}

var errSilent = errors.New("it has not answered for a second")

// receive takes n answers, until enough says so, or ctx or closing ends. Once a majority has answered,
// it waits for the others no longer than it has waited by then, and a moment.
func receive[T any](ctx, closing context.Context, s *Servers, answers <-chan answer[T], n int, enough func(answer[T]) bool) error {
	began, heard := time.Now(), len(s.members)-n // who is not asked has answered before
	var patience <-chan time.Time
	for range n {
		select {
		case a := <-answers:
			if enough(a) {
				return nil
			}
			if heard++; a.err != nil {
				heard--
			}
			if heard >= s.need && patience == nil {
				patience = time.After(moment + time.Since(began))
			}
		case <-patience:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-closing.Done():
			return context.Cause(closing)
		}
	}
	return nil
}

// moment is what the slow of a majority's fellows get.
const moment = 20 * time.Millisecond

// failure is the error of a call that too few servers answered: of the kind that most of those had
// that did not.
func (s *Servers) failure(answered int, failed []error) error {
	if len(failed) == 0 {
		return fmt.Errorf("%w: %d of %d servers answered in time, and %d must", fcall.ErrUnreachable, answered, len(s.members), s.need)
	}
	invalid := 0
	first, wrong := failed[0], failed[0]
	for _, err := range failed {
		if errors.Is(err, fcall.ErrInvalid) {
			invalid, wrong = invalid+1, err
		}
	}
	if invalid > len(s.members)-s.need {
		return wrong
	}
	return fmt.Errorf("%w: %d of %d servers answered, and %d must: %v", fcall.ErrUnreachable, answered, len(s.members), s.need, first)
}

// Home has no meaning here.
func (s *Servers) Home(uint16) string { return "" }

// Heal has nothing to do: each server is healed as it is called.
func (s *Servers) Heal(context.Context, error) bool { return false }

// Silent is for how long a majority has not answered.
func (s *Servers) Silent() time.Duration {
	silent := make([]time.Duration, 0, len(s.members))
	for _, member := range s.members {
		if c, err := member(); err == nil {
			silent = append(silent, c.Silent())
		} else {
			silent = append(silent, math.MaxInt64)
		}
	}
	return nth(silent, s.need)
}

// nth returns the n-th smallest, counted from 1; zero if there are fewer.
func nth[T int64 | time.Duration](of []T, n int) (zero T) {
	if len(of) < n {
		return zero
	}
	return slices.Sorted(slices.Values(of))[n-1]
}
