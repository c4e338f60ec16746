// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// notes is an Observer that writes down what it is told, and finds what does not fit together.
type notes struct {
	mu    sync.Mutex
	list  []string
	asks  map[client.Ask]int // of those that have no answer yet
	open  map[any]client.Acquisition
	wrong []string
}

type spanKey struct{}

func (n *notes) add(format string, args ...any) {
	n.list = append(n.list, fmt.Sprintf(format, args...))
}

func (n *notes) end(what string, t client.Tenure) {
	n.mu.Lock()
	defer n.mu.Unlock()
	began, known := n.open[t.Hold]
	if !known || began.Fence != t.Fence || began.Name != t.Name || began.Owner != t.Owner || t.Held < 0 {
		n.wrong = append(n.wrong, fmt.Sprintf("%s ends %+v, which began as %+v", what, t, began))
	}
	delete(n.open, t.Hold)
	n.add("%s %s passed=%v %v", what, t.Name, t.Passed, kind(t.Err))
}

// answer ends one call of Asked: of a call of the same kind for the same lock.
func (n *notes) answer(a client.Ask) {
	if n.asks[a]--; n.asks[a] == 0 {
		delete(n.asks, a)
	} else if n.asks[a] < 0 {
		n.wrong = append(n.wrong, fmt.Sprintf("an answer to %+v, which was not asked", a))
	}
}

// kind is the kind of an error, and for the ends of a lock which one.
func kind(err error) string {
	for _, e := range []error{client.ErrExpired, client.ErrTaken, client.ErrBroken, client.ErrMaxHold, client.ErrMaxRenewals,
		client.ErrBusy, client.ErrTimeout, client.ErrUnreachable, client.ErrClosed, client.ErrLost, client.ErrInvalid, context.Canceled} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	return fmt.Sprint(err)
}

func (n *notes) observer() *client.Observer {
	n.open, n.asks = map[any]client.Acquisition{}, map[client.Ask]int{}
	return &client.Observer{
		Asked: func(_ context.Context, a client.Ask) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.asks[a]++
			n.add("asked %s wait=%v", a.Name, a.Wait)
		},
		Acquired: func(_, lock context.Context, a client.Acquisition) context.Context {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.answer(client.Ask{Name: a.Name, Wait: a.Wait})
			if _, known := n.open[a.Hold]; known != a.Reentered {
				n.wrong = append(n.wrong, fmt.Sprintf("begins twice, or re-enters nothing: %+v", a))
			}
			if !a.Reentered {
				n.open[a.Hold] = a
			}
			n.add("acquired %s passed=%v reentered=%v", a.Name, a.Passed, a.Reentered)
			return context.WithValue(lock, spanKey{}, a.Fence)
		},
		Refused: func(_ context.Context, r client.Refusal) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.answer(client.Ask{Name: r.Name, Wait: r.Wait})
			n.add("refused %s: %s", r.Name, kind(r.Err))
		},
		Renewed: func(r client.Renewal) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.add("renewed %s: %s", r.Name, kind(r.Err))
		},
		Released:   func(t client.Tenure) { n.end("released", t) },
		Lost:       func(t client.Tenure) { n.end("lost", t) },
		Connection: func(c client.Connection) { n.mu.Lock(); n.add("connection: %s", kind(c.Err)); n.mu.Unlock() },
	}
}

// saw returns what was noted since the last call, with what is noted now: a lock's context ends before
// the Observer is told why.
func (n *notes) saw(t *testing.T) []string {
	t.Helper()
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	require.Empty(t, n.wrong)
	list := n.list
	n.list = nil
	return list
}

// balance fails the test unless each call of Asked was answered, and each tenure has ended.
func (n *notes) balance(t *testing.T) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	require.Empty(t, n.open, "began and did not end")
	require.Empty(t, n.asks, "asked and not answered")
}

func TestTheObserverIsTold(t *testing.T) {
	t.Parallel()
	const asked, acquired = "asked x wait=true", "acquired x passed=false reentered=false"
	for name, c := range map[string]struct {
		does func(t *testing.T, s *locktest.Server, c *client.Client)
		want []string
	}{
		"a lock": {func(t *testing.T, s *locktest.Server, c *client.Client) {
			l, err := c.TryAcquire(ctx, "x")
			require.NoError(t, err)
			time.Sleep(1500 * time.Millisecond)
			require.NoError(t, l.Renew(ctx))
			require.NoError(t, l.Release(ctx))
		}, []string{"asked x wait=false", acquired, "renewed x: <nil>", "released x passed=false <nil>"}},
		"a refusal": {func(t *testing.T, s *locktest.Server, c *client.Client) {
			s.Take("x", time.Minute)
			_, err := c.TryAcquire(ctx, "x")
			require.ErrorIs(t, err, client.ErrBusy)
			_, err = c.Acquire(ctx, "x", client.WithMaxWait(time.Second))
			require.ErrorIs(t, err, client.ErrTimeout)
			_, err = c.Acquire(ctx, "")
			require.ErrorIs(t, err, client.ErrArgument)
		}, []string{"asked x wait=false", "refused x: " + client.ErrBusy.Error(), asked, "refused x: " + client.ErrTimeout.Error(),
			"asked  wait=true", "refused : " + client.ErrInvalid.Error()}},
		"re-entry": {func(t *testing.T, s *locktest.Server, c *client.Client) {
			require.NoError(t, c.Do(ctx, "x", func(ctx context.Context) error { return c.Do(ctx, "x", nothing) }))
		}, []string{asked, acquired, asked, "acquired x passed=false reentered=true", "released x passed=false <nil>"}},
		"MaxHold": {func(t *testing.T, s *locktest.Server, c *client.Client) {
			l := holding(t, c, "x", client.WithMaxHold(500*time.Millisecond, 0))
			<-l.Context().Done()
			require.ErrorIs(t, l.Release(ctx), client.ErrMaxHold)
		}, []string{asked, acquired, "lost x passed=false " + client.ErrMaxHold.Error()}},
		"MinHold": {func(t *testing.T, s *locktest.Server, c *client.Client) {
			require.NoError(t, holding(t, c, "x", client.WithMinHold(time.Minute)).Release(ctx))
			time.Sleep(2 * time.Minute)
		}, []string{asked, acquired, "released x passed=false <nil>"}},
		"taken": {func(t *testing.T, s *locktest.Server, c *client.Client) {
			l := holding(t, c, "x")
			s.Take("x", time.Minute)
			<-l.Context().Done()
			require.ErrorIs(t, l.Release(ctx), client.ErrTaken)
		}, []string{asked, acquired, "renewed x: " + client.ErrTaken.Error(), "lost x passed=false " + client.ErrTaken.Error()}},
		"found at the release": {func(t *testing.T, s *locktest.Server, c *client.Client) {
			l := holding(t, c, "x")
			s.Take("x", time.Minute)
			require.ErrorIs(t, l.Release(ctx), client.ErrTaken)
		}, []string{asked, acquired, "released x passed=false " + client.ErrTaken.Error()}},
		"an outage": {func(t *testing.T, s *locktest.Server, c *client.Client) {
			l := holding(t, c, "x")
			s.Cut()
			<-l.Context().Done()
			s.Restore()
			require.ErrorIs(t, l.Release(ctx), client.ErrExpired)
			_, err := c.Inspect(ctx, "x")
			require.NoError(t, err)
		}, []string{asked, acquired, "connection: " + client.ErrUnreachable.Error(), "renewed x: " + client.ErrUnreachable.Error(),
			"lost x passed=false " + client.ErrExpired.Error(), "connection: <nil>"}},
		"closed": {func(t *testing.T, s *locktest.Server, c *client.Client) {
			holding(t, c, "x")
			c.Close()
			_, err := c.TryAcquire(ctx, "y")
			require.ErrorIs(t, err, client.ErrClosed)
		}, []string{asked, acquired, "lost x passed=false " + client.ErrClosed.Error(), "asked y wait=false", "refused y: " + client.ErrClosed.Error()}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *locktest.Server) {
				var n notes
				c.does(t, s, s.Client(client.Config{Lease: 3 * time.Second, Observer: n.observer()}))
				// A renewal is repeated when the client hears on its channel, and when it had no answer.
				require.Equal(t, c.want, slices.Compact(n.saw(t)))
			})
		})
	}
}

// What the Observer puts into a lock's context is found by the work, and the context still ends as a
// lock's does, with its cause, also one that is derived from it.
func TestTheObserversContextIsTheLocks(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		var n notes
		c := s.Client(client.Config{Observer: n.observer()})
		outer := context.WithValue(ctx, spanKey{}, "the caller's")
		l, err := c.Acquire(outer, "x")
		require.NoError(t, err)
		require.Equal(t, l.Fence(), l.Context().Value(spanKey{}))
		require.Equal(t, l.Fence(), client.Fence(l.Context()))
		again, err := c.Acquire(l.Context(), "x")
		require.NoError(t, err)
		require.NoError(t, again.Release(ctx))
		derived, cancel := context.WithCancel(l.Context())
		defer cancel()
		time.Sleep(11 * time.Second) // its renewal, from which on it is told of a break
		s.Break("x", "maintenance")
		<-derived.Done()
		require.ErrorIs(t, context.Cause(derived), client.ErrBroken)
		require.ErrorIs(t, l.Context().Err(), context.Canceled)
	})
}

func TestObserversAreJoined(t *testing.T) {
	var a, b notes
	joined := client.JoinObservers(a.observer(), nil, b.observer(), &client.Observer{})
	for range 2 {
		joined.Asked(ctx, client.Ask{Name: "x"})
	}
	joined.Refused(ctx, client.Refusal{Name: "x", Err: client.ErrBusy})
	got := joined.Acquired(ctx, ctx, client.Acquisition{Name: "x", Fence: 7, Hold: 1})
	require.Equal(t, int64(7), got.Value(spanKey{}))
	joined.Renewed(client.Renewal{Name: "x"})
	joined.Lost(client.Tenure{Name: "x", Fence: 7, Hold: 1, Err: client.ErrBroken})
	joined.Connection(client.Connection{})
	require.Empty(t, a.wrong)
	require.Len(t, a.list, 7)
	require.Equal(t, a.list, b.list)
	require.Nil(t, client.JoinObservers().Asked)
}

// An Observer that blocks holds up no renewal, no end of a context, and no Close.
func TestAStuckObserverStopsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		stuck := make(chan struct{})
		defer close(stuck)
		c := s.Client(client.Config{Observer: &client.Observer{Renewed: func(client.Renewal) { <-stuck }}})
		l := holding(t, c, "x")
		time.Sleep(2 * time.Minute)
		require.NoError(t, l.Context().Err(), "it is renewed")
		s.Delete("x")
		<-l.Context().Done()
		require.ErrorIs(t, context.Cause(l.Context()), client.ErrTaken)
		spend(t, 0, 2*time.Second, c.Close)
	})
}

// Who counts locks is told of the end of each, however many end at once.
func TestTheObserverIsToldOfEveryLoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		var log bytes.Buffer
		lost, stuck := 0, make(chan struct{})
		c := s.Client(client.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Observer: &client.Observer{Lost: func(client.Tenure) { <-stuck; lost++ }}})
		for i := range 9000 {
			holding(t, c, fmt.Sprint("x", i))
		}
		time.AfterFunc(100*time.Millisecond, func() { close(stuck) })
		c.Close()
		require.Equal(t, 9000, lost)
		require.Empty(t, log.String(), "a client that is closed has lost nothing")
	})
}

// A waiter learns whom it waited for.
func TestTheObserverIsToldWhoWasBefore(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		var behind []string
		observer := &client.Observer{Acquired: func(_, lock context.Context, a client.Acquisition) context.Context {
			if a.Behind == nil {
				behind = append(behind, "nobody")
			} else {
				behind = append(behind, a.Behind.Holder.Label)
			}
			return lock
		}}
		a, b := s.Client(client.Config{Label: "a"}), s.Client(client.Config{Observer: observer, Label: "b"})
		for _, opt := range []client.Option{client.WithMaxWait(0), client.WithPolling(100, time.Second), client.WithoutRenewal()} {
			l := holding(t, a, "x")
			time.AfterFunc(2500*time.Millisecond, func() { require.NoError(t, l.Release(ctx)) })
			require.NoError(t, b.Do(ctx, "x", nothing, opt))
		}
		require.NoError(t, b.Do(ctx, "x", nothing))
		require.Equal(t, []string{"a", "a", "a", "nobody"}, behind)
	})
}
