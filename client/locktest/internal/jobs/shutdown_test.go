// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// The context of one lock is the parent of the next one's: that it ends does not abandon the next.
func TestAShutdownKeepsLocksUnderLocks(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c, down := s.Client(client.Config{}), make(chan error, 2)
		s.Take("d", time.Hour)
		waiter := waits(s, c, "d", 1)
		require.NoError(t, c.Do(ctx, "a", func(ctx context.Context) error {
			return c.DoAll(ctx, []string{"b", "c"}, func(work context.Context) error {
				go func() { down <- c.Shutdown(context.Background()) }()
				<-work.Done()
				require.ErrorIs(t, context.Cause(work), client.ErrShutdown)
				spend(t, 0, 10*time.Millisecond, func() { require.Nil(t, <-waiter) })
				queued(s, "d", 0)
				time.Sleep(10 * time.Minute)
				require.Empty(t, down)
				for _, name := range []string{"a", "b", "c"} {
					require.True(t, s.Inspect(name).Held, name)
				}
				return nil
			})
		}))
		require.NoError(t, <-down)
		for _, name := range []string{"a", "b", "c"} {
			s.Free(name)
		}
	})
}

// The context has ended with ErrShutdown: that the lock is lost behind that, the Release says, and the log.
func TestALockIsLostInAShutdown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		does func(s *locktest.Server)
		want error
	}{
		{func(s *locktest.Server) { s.Cut() }, client.ErrExpired},
		{func(s *locktest.Server) { s.Take("x", time.Hour) }, client.ErrTaken},
		{func(s *locktest.Server) { s.Break("x", "why") }, client.ErrBroken},
	} {
		bubble(t, func(t *testing.T, s *locktest.Server) {
			var list notes
			cl, down := s.Client(client.Config{Observer: list.observer()}), make(chan error, 1)
			require.ErrorIs(t, cl.Do(ctx, "x", func(ctx context.Context) error {
				go func() { down <- cl.Shutdown(context.Background()) }()
				<-ctx.Done()
				c.does(s)
				time.Sleep(time.Minute)
				return nil
			}), c.want)
			require.NoError(t, <-down, "no lock is left")
			require.Contains(t, list.saw(t), "lost x passed=false "+kind(c.want))
			list.balance(t)
		})
	}
}

// Who calls it twice, or Close beside it, is told what was left to its lease.
func TestCloseBesideAShutdown(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		var list notes
		c, down := s.Client(client.Config{Observer: list.observer()}), make(chan error, 2)
		l := holding(t, c, "x")
		for range 2 {
			go func() { down <- c.Shutdown(ctx) }()
		}
		time.Sleep(time.Minute)
		s.HeldBy(l)
		c.Close()
		require.ErrorIs(t, <-down, client.ErrClosed)
		require.ErrorIs(t, <-down, client.ErrClosed)
		s.HeldBy(l)
		require.ErrorIs(t, l.Release(ctx), client.ErrClosed)
		require.NoError(t, c.Shutdown(ctx))
		list.saw(t)
		list.balance(t)
	})
}

// second calls shuts at the second look at it: the call has been granted the lock then, and nobody has it yet.
type second struct {
	context.Context
	looks *int
	shuts func()
}

func (c second) Err() error {
	if *c.looks++; *c.looks == 2 {
		c.shuts()
	}
	return c.Context.Err()
}

// What nobody worked under is given back at once, without its minimum: others run in this interval.
func TestWhatIsGrantedInAShutdownIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(s *locktest.Server, c *client.Client, parent context.Context) error{
		"Once": func(_ *locktest.Server, c *client.Client, parent context.Context) error {
			run, err := c.Once(ctx, "x", time.Hour, nothing, client.WithLockContext(parent))
			require.False(t, run.Ran)
			return err
		},
		"Acquire": func(_ *locktest.Server, c *client.Client, parent context.Context) error {
			return c.Do(ctx, "x", nothing, client.WithLockContext(parent), client.WithMinHold(time.Hour))
		},
		"AcquireAll": func(s *locktest.Server, c *client.Client, parent context.Context) error {
			defer s.Take("y", time.Hour)()
			time.AfterFunc(time.Second, func() { _, _ = parent.Err(), parent.Err() })
			return c.DoAll(ctx, []string{"x", "y"}, nothing, client.WithMinHold(time.Hour))
		},
	} {
		bubble(t, func(t *testing.T, s *locktest.Server) {
			c, down := s.Client(client.Config{}), make(chan error, 1)
			require.ErrorIs(t, call(s, c, second{ctx, new(int), func() {
				go func() { down <- c.Shutdown(ctx) }()
				synctest.Wait()
			}}), client.ErrShutdown, name)
			require.NoError(t, <-down, name)
			run, err := s.Client(client.Config{}).Once(ctx, "x", time.Hour, nothing)
			require.NoError(t, err)
			require.True(t, run.Ran, name)
		})
	}
}

// A lock that is not renewed by itself is renewed by hand in a shutdown too, and says how much is left of it.
func TestALockIsRenewedByHandInAShutdown(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		var list notes
		watch := list.observer()
		noted := watch.Acquired
		c, down := (*client.Client)(nil), make(chan error, 1)
		watch.Acquired = func(call, lock context.Context, a client.Acquisition) context.Context {
			go func() { down <- c.Shutdown(ctx) }() // it is held, and the Observer hears of that now
			synctest.Wait()
			return noted(call, lock, a)
		}
		c = s.Client(client.Config{NoRenewal: true, Observer: watch})
		l := holding(t, c, "x")
		require.ErrorIs(t, context.Cause(l.Context()), client.ErrShutdown)
		for range 5 {
			time.Sleep(20 * time.Second)
			require.InDelta(t, 10*time.Second, l.Remaining(), float64(time.Second))
			var both sync.WaitGroup
			for range 2 { // one waits for the other
				both.Go(func() { require.NoError(t, l.Renew(ctx)) })
			}
			both.Wait()
		}
		s.HeldBy(l)
		require.NoError(t, l.Release(ctx))
		require.ErrorIs(t, l.Renew(ctx), client.ErrNotHeld)
		require.NoError(t, <-down)
		require.Contains(t, list.saw(t), "released x passed=false <nil>")
		list.balance(t)
	})
}

// The function makes its value to the end, and others have it. Those that wait for it here do not wait any more.
func TestAValueIsMadeInAShutdown(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c, down, made := s.Client(client.Config{}), make(chan error, 1), make(chan error, 1)
		get := func(c *client.Client, fn func(context.Context) ([]byte, error)) (string, error) {
			value, err := c.OnceValue(ctx, "token", time.Hour, fn)
			return string(value), err
		}
		go func() {
			_, err := get(c, func(work context.Context) ([]byte, error) {
				<-work.Done()
				time.Sleep(time.Minute)
				return []byte("value"), nil
			})
			made <- err
		}()
		s.Await("token", func(i client.Info) bool { return i.Held })
		time.AfterFunc(time.Second, func() { down <- c.Shutdown(ctx) })
		spend(t, time.Second, 2*time.Second, func() {
			_, err := get(c, nil)
			require.ErrorIs(t, err, client.ErrShutdown)
		})
		require.NoError(t, <-made)
		require.NoError(t, <-down)
		value, err := get(s.Client(client.Config{}), nil)
		require.NoError(t, err)
		require.Equal(t, "value", value)
		_, err = get(c, nil)
		require.ErrorIs(t, err, client.ErrShutdown, "not from memory either")
	})
}

// A lock whose release has no answer waits for its lease, and Shutdown says so.
func TestAReleaseHasNoAnswerInAShutdown(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c, released := s.Client(client.Config{}), make(chan error, 1)
		l := holding(t, c, "x")
		s.Stop()
		go func() { released <- l.Release(ctx) }()
		time.Sleep(time.Second)
		within, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		require.ErrorIs(t, c.Shutdown(within), client.ErrTimeout)
		require.ErrorIs(t, <-released, client.ErrClosed)
	})
}
