// SPDX-License-Identifier: Apache-2.0

package quorum

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/internal/dial"
	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// The times of the calls.
const (
	// What a server that is asked first may take before the next one is. More than the way to a server
	// and back, or the order is lost; less than anybody would notice.
	headStart = 50 * time.Millisecond
	// ... and as a part of the lease.
	headStartPart = 16

	// What the slow of a majority's fellows get, more than the majority took.
	moment = 20 * time.Millisecond
	// ... for a vote: another round is as long.
	fellows = time.Millisecond
	// What they get for a vote that decides: more than the way to another continent and back. For a
	// renewal it is an eighth of the lease.
	deciding = 250 * time.Millisecond

	unheard = time.Second // of a server's silence, before no more calls are sent to it than unheardOf
)

// More would pile up at a server that does not answer, each with its goroutines, for as long as rueidis
// waits.
const unheardOf = 128

// member is one server.
type member struct {
	wires  *dial.Wires                  // of Open; nil: the rueidis client is the caller's
	at     []string                     // its addresses, of Open
	caller atomic.Pointer[fcall.Caller] // nil: no connection yet

	flying atomic.Int64 // calls under way
	since  atomic.Int64 // the first of them began, or the server was heard: nanoseconds since born
}

var born = time.Now()

var errConnecting, errSilent = errors.New("no connection yet"), errors.New("it has not answered for a second")

// begin notes a call, and returns who makes it.
func (m *member) begin() (*fcall.Caller, error) {
	c := m.caller.Load()
	switch n := m.flying.Load(); {
	case c == nil:
		return nil, fcall.NotConnected(errConnecting)
	case n >= unheardOf && m.silent(unheard):
		return nil, fcall.NotConnected(errSilent)
	case n == 0:
		m.heard()
	}
	m.flying.Add(1)
	return c, nil
}

// heard notes an answer of the server. A call that found nothing to send ends without one.
func (m *member) heard() { m.since.Store(int64(time.Since(born))) }

// silent reports whether calls have been waiting for so long and none was answered.
func (m *member) silent(long time.Duration) bool {
	return m.flying.Load() > 0 && time.Since(born)-time.Duration(m.since.Load()) > long
}

// servers are what a lock is asked for: a Backend.
type servers struct {
	members []*member
	need    int
	ballots ballots
	rivals  rivals

	autoLoad   bool
	log        *slog.Logger
	histories  sync.Map // by replication id, the members that have been connected to
	connecting sync.WaitGroup

	closing context.Context // ends the calls of Do, by its cause
	done    context.Context // ends the rest
	end     context.CancelFunc
}

func newServers(members int, cfg client.Config) *servers {
	s := &servers{need: members/2 + 1, ballots: ballots{servers: members, by: map[string]*ballot{}},
		rivals: rivals{by: map[string]rival{}}, autoLoad: cfg.AutoLoad, log: cmp.Or(cfg.Logger, slog.Default())}
	for range members {
		s.members = append(s.members, &member{})
	}
	s.closing = context.Background() // until it has a Client
	s.done, s.end = context.WithCancel(context.Background())
	return s
}

// Voting returns true.
func (s *servers) Voting() bool { return true }

// Slot returns 0.
func (s *servers) Slot(string) uint16 { return 0 }

// Do makes one call.
func (s *servers) Do(ctx context.Context, call fcall.Call) (fcall.Reply, error) {
	if call.Verb == fcall.Acquire || call.Verb == fcall.Wait {
		return s.acquire(ctx, call)
	}
	o := s.pipeline(ctx, s.closing, []fcall.Call{call}, true)[0]
	return o.Reply, o.Err
}

// Send makes calls as one pipeline to each server. None of them takes a lock.
func (s *servers) Send(ctx context.Context, calls []fcall.Call) []fcall.Outcome {
	return s.pipeline(ctx, s.done, calls, false)
}

// answer is what a server said, or why it did not.
type answer[T any] struct {
	from  int
	value T
	err   error
}

// ask calls a server. The call goes on until rueidis gives up its connection, whether or not anybody waits
// for it still: what a slow server says late has its consequences too.
func ask[T any](ctx context.Context, s *servers, i int, call func(context.Context, *fcall.Caller) (T, error)) answer[T] {
	a := answer[T]{from: i}
	c, err := s.members[i].begin()
	if a.err = err; err != nil {
		return a
	}
	defer s.members[i].flying.Add(-1)
	a.value, a.err = call(context.WithoutCancel(ctx), c)
	return a
}

// receive takes the answers of all, until enough says so, or ctx or closing ends. Once so many are heard
// as it needs, it waits for the others no longer than it has waited by then, and a moment; but so long as open
// says, while that is not 0: it is for those to decide.
func receive[T any](ctx, closing context.Context, answers <-chan answer[T], needs int, moment time.Duration,
	open func() time.Duration, enough func(answer[T]) bool) error {
	began, most := time.Now(), time.Duration(1)
	var patience <-chan time.Time
	for range cap(answers) {
		if needs <= 0 && most > 0 {
			most = open()
			patience = time.After(max(moment+time.Since(began), most-time.Since(began)))
		}
		select {
		case a := <-answers:
			if enough(a) {
				return nil
			}
			if a.err == nil {
				needs--
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

// sure is for answers of which none decides.
func sure() time.Duration { return 0 }

// poll returns one without an answer.
func (s *servers) poll() poll {
	return poll{servers: len(s.members), need: s.need, yes: make([]fcall.Reply, 0, len(s.members))}
}

// nth is the n-th smallest value of all, counted from 1; zero if there are fewer.
func nth[T int64 | time.Duration](of []fcall.Reply, value func(fcall.Reply) T, n int) (zero T) {
	if n < 1 || len(of) < n {
		return zero
	}
	all := make([]T, 0, 9) // there are no more servers, so it need not be on the heap
	for _, r := range of {
		all = append(all, value(r))
	}
	slices.Sort(all)
	return all[n-1]
}

func fence(r fcall.Reply) int64 { return r.Fence }

func remaining(r fcall.Reply) time.Duration { return r.Remaining }
