// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
)

func TestAcquireAll(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		var list notes
		c := s.Client(client.Config{Observer: list.observer()})
		all, err := c.AcquireAll(ctx, []string{"c", "a", "b", "a"}, client.WithLockContext(context.WithValue(ctx, spanKey{}, "outer")))
		require.NoError(t, err)
		require.Equal(t, all.Lock("c").Fence(), client.Fence(all.Context()))
		require.Nil(t, all.Lock("d"))
		require.Len(t, list.saw(t), 2*3)
		for _, name := range []string{"a", "b", "c"} {
			s.HeldBy(all.Lock(name))
			again, err := c.Acquire(all.Context(), name)
			require.NoError(t, err)
			require.Equal(t, all.Lock(name).Fence(), again.Fence(), "it re-entered")
			require.NoError(t, again.Release(ctx))
		}
		require.NoError(t, all.Context().Err())
		require.NoError(t, all.Release(ctx))
		require.ErrorIs(t, context.Cause(all.Context()), client.ErrReleased)
		for _, name := range []string{"a", "b", "c"} {
			s.Free(name)
		}
		require.ErrorIs(t, all.Release(ctx), client.ErrNotHeld)
		list.balance(t)

		// All take them in one order, so nobody waits for another in a circle.
		l := holding(t, c, "a")
		done := make(chan error)
		go func() { done <- c.DoAll(ctx, []string{"b", "a"}, nothing) }()
		time.Sleep(time.Second)
		s.Free("b")
		require.NoError(t, l.Release(ctx))
		require.NoError(t, <-done)

		// Under one of them the others are taken one after the other, and that one is re-entered.
		require.NoError(t, c.Do(ctx, "b", func(ctx context.Context) error { return c.DoAll(ctx, []string{"a", "b"}, nothing) }))
		s.Free("b")
	})
}

func TestTheFirstLossEndsTheContextOfAll(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "b", "c"} {
		bubble(t, func(t *testing.T, s *locktest.Server) {
			err := s.Client(client.Config{}).DoAll(ctx, []string{"a", "b", "c"}, func(ctx context.Context) error {
				s.Take(name, time.Minute)
				<-ctx.Done()
				require.ErrorIs(t, context.Cause(ctx), client.ErrTaken)
				time.Sleep(30 * time.Second) // those under it are abandoned meanwhile
				return nil
			})
			require.ErrorIs(t, err, client.ErrTaken)
			for _, n := range []string{"a", "b", "c"} {
				if n != name {
					s.Free(n)
				}
			}
		})
	}
}

func TestAllOrNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		names []string
		opt   client.Option
		want  error
	}{
		"MaxWait":   {[]string{"a", "b", "c"}, client.WithMaxWait(5 * time.Second), client.ErrTimeout},
		"deadline":  {[]string{"a", "b"}, client.WithMaxWait(time.Hour), client.ErrTimeout}, // of the first one too
		"tries":     {[]string{"a", "b"}, client.WithPolling(1, time.Second), client.ErrBusy},
		"no names":  {nil, client.WithOptions(), client.ErrArgument},
		"no name":   {[]string{"a", ""}, client.WithOptions(), client.ErrArgument},
		"no option": {[]string{"a"}, client.WithMaxWait(-1), client.ErrArgument},
	} {
		for range 50 {
			bubble(t, func(t *testing.T, s *locktest.Server) {
				s.Take("b", time.Hour)
				began := time.Now()
				soon, cancel := context.WithTimeout(ctx, 5*time.Second+time.Millisecond)
				defer cancel()
				_, err := s.Client(client.Config{}).AcquireAll(soon, c.names, c.opt)
				require.ErrorIs(t, err, c.want, name)
				if c.want == client.ErrTimeout {
					require.InDelta(t, 5*time.Second, time.Since(began), float64(100*time.Millisecond))
				}
				freed(s, "a")
				freed(s, "c")
			})
		}
	}
}

// One that is held is lost while the call waits for the next.
func TestALossEndsTheWaitForTheOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		s.Take("b", time.Hour)
		waiting := make(chan error)
		go func() {
			_, err := s.Client(client.Config{}).AcquireAll(ctx, []string{"a", "b"})
			waiting <- err
		}()
		queued(s, "b", 1)
		time.Sleep(2 * time.Second) // from here on it is told
		s.Take("a", time.Minute)
		require.ErrorIs(t, <-waiting, client.ErrLost)
		queued(s, "b", 0)
	})
}

// Nobody worked under what an AcquireAll had that failed: MinHold does not keep it from others. What it
// re-entered is somebody else's, whose MinHold counts.
func TestAllThatFailedKeepNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c := s.Client(client.Config{MinHold: 20 * time.Second})
		s.Take("b", time.Hour)
		_, err := c.AcquireAll(ctx, []string{"a", "b"}, client.WithMaxWait(time.Second))
		require.ErrorIs(t, err, client.ErrTimeout)
		freed(s, "a")

		spend(t, 20*time.Second-10*time.Millisecond, 20*time.Second+10*time.Millisecond, func() {
			l := holding(t, c, "a")
			time.AfterFunc(time.Second, func() { require.NoError(t, l.Release(ctx)) })
			_, err = c.AcquireAll(l.Context(), []string{"a", "b"})
			require.ErrorIs(t, err, context.Canceled)
			holding(t, c, "a")
		})
	})
}

// A server that falls silent while many are held holds nobody up for each of them: neither the end of
// the wait, by whatever, nor a Release whose context is over.
func TestManyAtASilentServer(t *testing.T) {
	t.Parallel()
	names := []string{}
	for i := range 100 {
		names = append(names, fmt.Sprintf("%03d", i))
	}
	for _, by := range []client.Option{client.WithMaxWait(2 * time.Second), client.WithOptions()} {
		bubble(t, func(t *testing.T, s *locktest.Server) {
			c := s.Client(client.Config{})
			s.Take("099", time.Hour)
			within, cancel := context.WithTimeout(ctx, 2*time.Second+time.Millisecond)
			defer cancel()
			time.AfterFunc(time.Second, func() { s.Cut(c) })
			spend(t, 2*time.Second, 2300*time.Millisecond, func() {
				_, err := c.AcquireAll(within, names, by)
				require.ErrorIs(t, err, client.ErrUnreachable)
			})
			s.Restore(c)
			time.Sleep(time.Second)
			s.Delete("099")
			for _, name := range names {
				s.Free(name)
			}

			all, err := c.AcquireAll(ctx, names)
			require.NoError(t, err)
			s.Cut(c)
			over, end := context.WithCancel(ctx)
			end()
			spend(t, 0, 300*time.Millisecond, func() { require.ErrorIs(t, all.Release(over), client.ErrUnreachable) })
		})
	}
}

// Who waited for a silent server is told that, and not that others had the locks for too long.
func TestAllAtASilentServer(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		var list notes
		c := s.Client(client.Config{Observer: list.observer()})
		s.Cut(c)
		_, err := c.AcquireAll(ctx, []string{"b", "a"}, client.WithMaxWait(time.Second))
		require.ErrorIs(t, err, client.ErrUnreachable)
		soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, err = c.AcquireAll(soon, []string{"b", "a"})
		require.ErrorIs(t, err, client.ErrTimeout, "too short to tell")
		gone, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		_, err = c.AcquireAll(gone, []string{"b", "a"})
		require.ErrorIs(t, err, context.Canceled)
		s.Restore(c)
		time.Sleep(time.Second)
		s.Free("a")
		s.Free("b")
		require.Equal(t, []string{"asked a wait=true", "refused a: server unreachable", "asked a wait=true",
			"refused a: waited too long", "asked a wait=true", "refused a: context canceled"}, list.saw(t))
		list.balance(t)
	})
}

// What it re-entered can be its own to give back: that holds nobody up either.
func TestAllUnderALockThatIsReleased(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c, over := s.Client(client.Config{}), make(chan error)
		s.Take("b", time.Hour)
		l := holding(t, c, "a")
		go func() {
			_, err := c.AcquireAll(l.Context(), []string{"a", "b"})
			over <- err
		}()
		queued(s, "b", 1)
		s.Cut(c)
		spend(t, 0, 20*time.Millisecond, func() {
			require.NoError(t, l.Release(ctx))
			require.ErrorIs(t, <-over, context.Canceled)
		})
		s.Restore(c)
		freed(s, "a")
	})
}

// As with Do, a giving back that the server did not answer is logged, for each lock.
func TestDoAllSaysWhatWasNotGivenBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		var log bytes.Buffer
		c := s.Client(client.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		within, end := context.WithCancel(ctx)
		require.NoError(t, c.DoAll(within, []string{"a", "b"}, func(context.Context) error {
			s.Cut(c)
			end()
			return nil
		}))
		synctest.Wait()
		require.Contains(t, log.String(), "lock=a")
		require.Contains(t, log.String(), "lock=b")
	})
}
