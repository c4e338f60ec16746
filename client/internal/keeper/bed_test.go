// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/holdfast-go/holdfast/client/internal/tracking"
	"github.com/stretchr/testify/require"
)

const token = 7

var errClosed = errors.New("closed")

// call is one that the server got.
type call struct {
	fcall.Call
	at time.Duration // since the test began
}

// server is a Backend whose answers the test decides on.
type server struct {
	fcall.Backend
	answer func(c fcall.Call) fcall.Outcome // nil: yes to all
	silent bool                             // it does what it is asked, and nobody gets an answer
	mute   string                           // it is silent to a pipeline that has a call for this key
	took   time.Duration                    // from a request to its answer

	mu        sync.Mutex
	began     time.Time
	calls     []call
	pipelines []int     // how many calls each had
	flying    int       // renewals under way
	crossed   bool      // two were
	until     time.Time // the end of the lease
}

// Slot is that of no Cluster.
func (s *server) Slot(string) uint16 { return 0 }

func (s *server) Do(ctx context.Context, c fcall.Call) (fcall.Reply, error) {
	o := s.Send(ctx, []fcall.Call{c})[0]
	return o.Reply, o.Err
}

func (s *server) Send(ctx context.Context, calls []fcall.Call) []fcall.Outcome {
	outcomes := make([]fcall.Outcome, len(calls))
	s.mu.Lock()
	s.pipelines = append(s.pipelines, len(calls))
	s.flying++
	s.crossed = s.crossed || s.flying > 1
	for i, c := range calls {
		outcomes[i] = s.do(c)
	}
	silent, mute, took := s.silent, s.mute, s.took
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.flying--
		s.mu.Unlock()
	}()
	if silent || slices.ContainsFunc(calls, func(c fcall.Call) bool { return c.Key == mute }) {
		took = 24 * time.Hour
	}
	select {
	case <-time.After(took):
		return outcomes
	case <-ctx.Done():
	}
	for i := range outcomes {
		outcomes[i] = fcall.Outcome{Err: fcall.Classify(context.Background(), ctx.Err())}
	}
	return outcomes
}

// do is the server's part: a renewal never shortens the lease.
func (s *server) do(c fcall.Call) fcall.Outcome {
	s.calls = append(s.calls, call{c, time.Since(s.began)})
	if c.Verb == fcall.Renew {
		ms, _ := strconv.Atoi(c.TTL)
		if end := time.Now().Add(time.Duration(ms) * time.Millisecond); end.After(s.until) {
			s.until = end
		}
	}
	if s.answer != nil {
		return s.answer(c)
	}
	return ours
}

// record is what a server has seen.
type record struct {
	calls     []call
	pipelines []int
	crossed   bool
	until     time.Time
}

func (s *server) seen() record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return record{slices.Clone(s.calls), slices.Clone(s.pipelines), s.crossed, s.until}
}

func (s *server) set(change func(s *server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// asked returns when the server got calls of a verb, once nothing moves any more.
func (s *server) asked(verb fcall.Verb) (at []time.Duration) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.Verb == verb {
			at = append(at, c.at)
		}
	}
	return at
}

var (
	no          = fcall.Outcome{Reply: fcall.Reply{}}
	ours        = fcall.Outcome{Reply: fcall.Reply{Yes: true, Fence: token, Holder: "owner"}}
	unreachable = fcall.Outcome{Err: fcall.Classify(context.Background(), errors.New("connection reset"))}
)

// answers makes the server give these, one after the other, and the last one from then on.
func answers(all ...fcall.Outcome) func(fcall.Call) fcall.Outcome {
	return func(fcall.Call) (o fcall.Outcome) {
		if o = all[0]; len(all) > 1 {
			all = all[1:]
		}
		return o
	}
}

// bed is a keeper over a server, in virtual time.
type bed struct {
	*testing.T
	*Keeper
	server *server

	mu sync.Mutex
	heard
}

// heard is what the keeper told.
type heard struct {
	ends       []error // causes, of those that ended for the first time
	gone       int
	renewals   []error
	unanswered int
}

func (b *bed) heardNow() heard {
	b.mu.Lock()
	defer b.mu.Unlock()
	return heard{slices.Clone(b.ends), b.gone, slices.Clone(b.renewals), b.unanswered}
}

func in(t *testing.T, test func(t *testing.T, b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{T: t, server: &server{began: time.Now(), took: time.Millisecond}}
		note := func(change func()) {
			b.mu.Lock()
			defer b.mu.Unlock()
			change()
		}
		b.Keeper = New(Config{Backend: b.server, Cache: tracking.New(), Closed: errClosed,
			OnEnded: func(e *holding.Ending) {
				note(func() {
					if e.First {
						b.ends = append(b.ends, e.Cause)
					}
				})
			},
			OnGone: func(*holding.Holding) { note(func() { b.gone++ }) },
			OnRenewed: func(_ *holding.Holder, _ time.Duration, err error) {
				note(func() { b.renewals = append(b.renewals, err) })
			},
			OnUnanswered: func(locks int, _ error) { note(func() { b.unanswered += locks }) }})
		defer func() {
			over, cancel := context.WithCancel(context.Background())
			cancel()
			b.Close(over)
		}()
		test(t, b)
	})
}

var terms = &lease.Terms{Length: 30 * time.Second, RenewEvery: 10 * time.Second, Grace: 5 * time.Second, TTL: "30000"}

// hold is a lock that was granted now, and the context of the work under it.
func (b *bed) hold(parent context.Context, terms *lease.Terms) (*holding.Holding, context.Context, *holding.Ref) {
	now := time.Now()
	b.server.set(func(s *server) { s.until = now.Add(terms.Length) })
	h := holding.New(holding.Grant{Name: "job", Key: "lock:job", Owner: "owner", Terms: terms, First: token, Top: token,
		Since: now, Lease: lease.New(terms, now), LostError: func(_ *holding.Holder, why error, reason string) error {
			return fmt.Errorf("%w: %q", why, reason)
		}}).Holding
	work, cancel := context.WithCancelCause(parent)
	ref := &holding.Ref{Context: work, Cancel: cancel}
	require.NoError(b, h.Holder().Add(ref, false))
	require.True(b, b.Add(h))
	return h, work, ref
}

// ended requires that the work ended at that time, for that reason and no earlier.
func (b *bed) ended(work context.Context, at time.Duration, why error) {
	b.Helper()
	<-work.Done()
	require.Equal(b, at, time.Since(b.server.began))
	require.ErrorIs(b, context.Cause(work), why)
	synctest.Wait()
	require.Len(b, b.heardNow().ends, 1)
	require.ErrorIs(b, b.heardNow().ends[0], why)
}
