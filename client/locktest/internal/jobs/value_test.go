// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// One process makes the value, those that come meanwhile wait for it, and those that come later have it
// without waiting: until its end, from the server or from memory.
func TestOnceValue(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		made := 0
		mint := func(context.Context) ([]byte, error) {
			time.Sleep(30 * time.Second) // longer than a lease
			made++
			return fmt.Appendf(nil, "value %d", made), nil
		}
		get := func(c *client.Client, want string, opts ...client.Option) {
			value, err := c.OnceValue(ctx, "token", time.Hour, mint, opts...)
			require.NoError(t, err)
			require.Equal(t, want, string(value))
			value[0] = 'x' // it is the caller's
		}
		fleet := []*client.Client{s.Client(client.Config{}), s.Client(client.Config{}), s.Client(client.Config{})}
		var work sync.WaitGroup
		for i := range 12 {
			work.Go(func() { get(fleet[i%3], "value 1") })
		}
		spend(t, 30*time.Second, 30*time.Second+20*time.Millisecond, work.Wait)
		late := s.Client(client.Config{})
		spend(t, 0, time.Second, func() {
			for range 3 {
				get(late, "value 1")
			}
		})
		s.Pause()
		get(late, "value 1") // from memory
		s.Resume()
		info, err := late.Inspect(ctx, "token")
		require.NoError(t, err)
		require.Equal(t, "kept", info.Why)

		time.Sleep(time.Hour - 32*time.Second)
		get(late, "value 1")
		time.Sleep(3 * time.Second)
		get(late, "value 2")

		_, err = late.Break(ctx, "token", "the key was stolen") // who remembers, remembers
		require.NoError(t, err)
		get(late, "value 2")
		get(late, "value 3", client.WithFreshAnswer())
		get(fleet[0], "value 3")

		// Who asks afresh does not get what another call was told before, that has not returned yet.
		c := s.Client(client.Config{Observer: &client.Observer{Refused: func(context.Context, client.Refusal) { time.Sleep(time.Second) }}})
		work.Go(func() { get(c, "value 3") })
		time.Sleep(time.Second / 2)
		_, err = late.Break(ctx, "token", "it was revoked")
		require.NoError(t, err)
		get(c, "value 4", client.WithFreshAnswer())
		work.Wait()
	})
}

// Who fails keeps nobody from trying: the next one, of the same process or another, runs its own.
func TestOnceValueFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		wrong := errors.New("refused")
		c := s.Client(client.Config{Lease: 2 * time.Second})
		fails := func(context.Context) ([]byte, error) { time.Sleep(time.Second); return []byte("no"), wrong }
		panics := func(context.Context) ([]byte, error) { time.Sleep(time.Second); panic(wrong) }
		long := func(context.Context) ([]byte, error) { return []byte(strings.Repeat("x", functions.MaxValue+1)), nil }
		dies := func(ctx context.Context) ([]byte, error) {
			s.Take("token", time.Second)
			return []byte("lost"), nil
		}
		var ran atomic.Int32
		works := func(context.Context) ([]byte, error) { ran.Add(1); return nil, nil }

		var work sync.WaitGroup
		work.Go(func() {
			_, err := c.OnceValue(ctx, "token", time.Minute, fails)
			require.Equal(t, wrong, err)
		})
		s.Await("token", func(i client.Info) bool { return i.Held })
		work.Go(func() {
			require.PanicsWithError(t, wrong.Error(), func() { _, _ = c.OnceValue(ctx, "token", time.Minute, panics) })
		})
		work.Wait()
		_, err := c.OnceValue(ctx, "token", time.Minute, long)
		require.ErrorIs(t, err, client.ErrArgument)
		require.ErrorContains(t, err, "at most 65536 bytes, not 65537")
		value, err := c.OnceValue(ctx, "token", time.Minute, dies)
		require.ErrorIs(t, err, client.ErrLost)
		require.Equal(t, "lost", string(value))
		for _, c := range []*client.Client{c, s.Client(client.Config{})} {
			value, err = c.OnceValue(ctx, "token", time.Minute, works)
			require.NoError(t, err)
			require.Empty(t, value)
		}
		require.EqualValues(t, 1, ran.Load(), "an empty value is one")

		for _, opt := range []client.Option{client.WithOwner("o"), client.WithLimit(2), client.WithShared(), client.WithPolling(2, time.Second)} {
			_, err = c.OnceValue(ctx, "x", time.Minute, works, opt)
			require.ErrorIs(t, err, client.ErrArgument)
			require.ErrorContains(t, err, "OnceValue is not possible")
		}
	})
}

// A server that does not answer for a moment, or is restarted with its data, keeps the value when it answers; one that
// is full does not keep it, and the next one makes another. Whoever made it has it.
func TestOnceValueOfAServerInTrouble(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		a, b := s.Client(client.Config{Lease: 3 * time.Second}), s.Client(client.Config{})
		ran := 0
		get := func(c *client.Client, want string, meanwhile func()) {
			value, err := c.OnceValue(ctx, "token", time.Minute, func(context.Context) ([]byte, error) {
				ran++
				meanwhile()
				return fmt.Append(nil, ran), nil
			})
			require.NoError(t, err)
			require.Equal(t, want, string(value))
		}
		get(a, "1", func() {
			s.Cut(a)
			time.AfterFunc(time.Second, func() { s.Restore(a) })
		})
		get(b, "1", nil)

		time.Sleep(time.Minute + 2*time.Second)
		get(b, "2", func() {
			s.Stop()
			time.AfterFunc(time.Second, s.Start)
			time.Sleep(10 * time.Millisecond) // the client has noticed
		})
		get(a, "2", nil) // the lease of 30 s was far from over

		time.Sleep(time.Minute + 2*time.Second)
		get(a, "3", func() { s.Full(true) })
		s.Full(false)
		freed(s, "token")
		get(a, "3", nil)
		get(b, "4", func() {})

		// What one of a process finds out concerns all who wait in it.
		s.Cut(a)
		spend(t, 100*time.Millisecond, 40*time.Second, func() {
			var work sync.WaitGroup
			for range 20 {
				work.Go(func() {
					value, err := a.OnceValue(ctx, "other", time.Minute, nil)
					require.ErrorIs(t, err, client.ErrUnreachable)
					require.Nil(t, value)
				})
			}
			work.Wait()
		})
	})
}

// A call ends with its context, MaxWait and Close, behind whomever it waits.
func TestOnceValueEnds(t *testing.T) {
	t.Parallel()
	never := func(context.Context) ([]byte, error) { return nil, errors.New("it ran") }
	waits := func(c *client.Client, opts ...client.Option) <-chan error {
		over := make(chan error, 1)
		go func() {
			_, err := c.OnceValue(ctx, "token", time.Minute, never, opts...)
			over <- err
		}()
		return over
	}
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c, made := s.Client(client.Config{}), make(chan error, 1)
		go func() {
			value, err := c.OnceValue(ctx, "token", time.Minute, func(context.Context) ([]byte, error) {
				time.Sleep(20 * time.Second) // whatever its context says
				return []byte("made"), nil
			})
			require.Equal(t, "made", string(value))
			made <- err
		}()
		s.Await("token", func(i client.Info) bool { return i.Held })
		soon, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		spend(t, time.Second, 1010*time.Millisecond, func() {
			require.ErrorIs(t, <-waits(c, client.WithLockContext(soon)), client.ErrTimeout)
		})
		over := waits(c)
		time.AfterFunc(time.Second, c.Close)
		spend(t, time.Second, 1010*time.Millisecond, func() { require.ErrorIs(t, <-over, client.ErrClosed) })
		require.ErrorIs(t, <-made, client.ErrClosed, "nobody renewed the lock, and nobody else has the value")
		require.ErrorContains(t, <-waits(s.Client(client.Config{})), "it ran")
	})
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c, other := s.Client(client.Config{}), s.Client(client.Config{})
		runs := func(c *client.Client, d time.Duration, err error) {
			_, _ = c.OnceValue(ctx, "token", time.Minute, func(context.Context) ([]byte, error) { time.Sleep(d); return nil, err })
		}
		go runs(c, 900*time.Millisecond, errors.New("fails"))
		s.Await("token", func(i client.Info) bool { return i.Held })
		go runs(other, 10*time.Second, nil)
		queued(s, "token", 1)
		spend(t, time.Second, 1010*time.Millisecond, func() { require.ErrorIs(t, <-waits(c, client.WithMaxWait(time.Second)), client.ErrTimeout) })
		time.Sleep(11 * time.Second)

		// Who is second in line has the value as soon as who is first: its turn does not matter.
		s.Delete("token")
		for i, err := range []error{errors.New("fails"), nil, nil} {
			go runs(s.Client(client.Config{}), 10*time.Second, err)
			s.Await("token", func(info client.Info) bool { return info.Held && info.Waiters == i })
		}
		time.Sleep(11 * time.Second) // the server knows how long a turn takes
		require.NoError(t, <-waits(c, client.WithMaxWait(15*time.Second), client.WithGiveUpEarly()))
		over, cancel := context.WithCancel(ctx)
		cancel()
		for range 100 {
			_, err := c.OnceValue(over, "token", time.Minute, never)
			require.ErrorIs(t, err, context.Canceled)
		}
		s.Delete("token")
		time.Sleep(time.Minute)

		// MinHold keeps no value for longer than its interval, and no failure at all.
		keeps, ran := s.Client(client.Config{MinHold: time.Hour}), 0
		spend(t, 0, 10*time.Second, func() {
			for range 3 {
				runs(keeps, time.Second, errors.New("fails"))
			}
			runs(keeps, 0, nil)
		})
		time.Sleep(time.Minute + 10*time.Millisecond)
		_, err := keeps.OnceValue(ctx, "token", time.Minute, func(context.Context) ([]byte, error) { ran++; return nil, nil })
		require.NoError(t, err)
		require.Equal(t, 1, ran)
	})
}

// What a process remembers is bounded: in size, and by its own clock.
func TestWhatIsRememberedOfValues(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c, n := s.Client(client.Config{}), 0
		get := func(i int) error {
			_, err := c.OnceValue(ctx, fmt.Sprint(i), time.Hour, func(context.Context) ([]byte, error) {
				return make([]byte, functions.MaxValue), nil
			}, client.WithMaxWait(time.Millisecond))
			return err
		}
		for i := range 300 {
			require.NoError(t, get(i))
		}
		s.Pause()
		for i := range 300 {
			if get(i) == nil {
				n++
			}
		}
		require.InDelta(t, 255, n, 1, "in 16 MiB")
	})
	counted(t, func(t *testing.T, w *redis.World, n *redis.Node, _ func(string) int) {
		a, b := bed.Open(t, bed.Single(w, "a", n.Addr()), client.Config{}), bed.Open(t, bed.Single(w, "b", n.Addr()), client.Config{})
		ran := 0
		get := func(c *client.Client, want int) {
			value, err := c.OnceValue(ctx, "x", time.Minute, func(context.Context) ([]byte, error) { ran++; return []byte{byte(ran)}, nil })
			require.NoError(t, err)
			require.Equal(t, []byte{byte(want)}, value)
		}
		get(a, 1)
		n.SetClock(-time.Hour, 0) // the server keeps it for so much longer
		get(b, 1)
		n.Do("DEL", "lock:x")
		time.Sleep(59 * time.Second)
		get(b, 1)
		time.Sleep(2 * time.Second)
		get(b, 2)
	})
}

// The function says how long its value is good for: shorter or longer than every.
func TestAValueIsKeptForAsLongAsItIsGood(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		a, b, made := s.Client(client.Config{}), s.Client(client.Config{}), 0
		get := func(c *client.Client, want string, good time.Duration) {
			t.Helper()
			value, err := c.OnceValue(ctx, "token", time.Hour, func(ctx context.Context) ([]byte, error) {
				made++
				client.KeepFor(ctx, good)
				time.Sleep(time.Minute)
				return fmt.Append(nil, made), nil
			})
			require.NoError(t, err)
			require.Equal(t, want, string(value))
		}
		for i, good := range []time.Duration{10 * time.Minute, 5 * time.Hour, -time.Second} {
			get(a, fmt.Sprint(i+1), good)
			left := max(good-time.Minute, 2*time.Second)
			time.Sleep(left - time.Second)
			get(a, fmt.Sprint(i+1), good)
			get(b, fmt.Sprint(i+1), good)
			time.Sleep(2 * time.Second)
		}
		get(b, "4", time.Hour)
	})
}

// A value that comes late to the server is kept for longer by as much, and one that comes after the lease not
// at all.
func TestAValueComesLate(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		a, b := s.Client(client.Config{Lease: 10 * time.Second}), s.Client(client.Config{})
		get := func(c *client.Client, mine string, late time.Duration) string {
			value, err := c.OnceValue(ctx, "token", time.Minute, func(context.Context) ([]byte, error) {
				if late > 0 {
					s.Cut(c)
					time.AfterFunc(late, func() { s.Restore(c) })
				}
				return []byte(mine), nil
			})
			require.NoError(t, err)
			return string(value)
		}
		require.Equal(t, "1", get(a, "1", 5*time.Second))
		time.Sleep(time.Minute - time.Second)
		require.Equal(t, "1", get(b, "2", 0), "4 s after its interval")
		time.Sleep(2 * time.Second)
		require.Equal(t, "3", get(a, "3", 11*time.Second))
		require.Equal(t, "4", get(b, "4", 0))
	})
}

// A value is gone with its key. Clients that remember it have it until its end, and the next call that asks the server
// makes another: with a guard when that is over, if the server may have forgotten more than the value.
func TestAValueIsLostWithItsKey(t *testing.T) {
	t.Parallel()
	const guard = 40 * time.Second
	for name, lost := range map[string]struct {
		by      func(s *locktest.Server)
		forgets bool
	}{
		"deleted":  {func(s *locktest.Server) { s.Delete("token") }, false},
		"failover": {func(s *locktest.Server) { s.Failover("token") }, true},
		"restart":  {func(s *locktest.Server) { s.Forget() }, true},
	} {
		for _, guarded := range []time.Duration{0, guard} {
			t.Run(fmt.Sprint(name, " with a guard of ", guarded), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, s *locktest.Server) {
					cfg := client.Config{Guard: guarded}
					a, b := s.Client(cfg), s.Client(cfg)
					get := func(c *client.Client, mine, want string, opts ...client.Option) {
						fn := func(context.Context) ([]byte, error) { return []byte(mine), nil }
						value, err := c.OnceValue(ctx, "token", time.Hour, fn, opts...)
						require.NoError(t, err)
						require.Equal(t, want, string(value))
					}
					spend(t, 0, time.Second, func() { get(a, "1", "1") }) // the server is old from the start
					time.Sleep(2 * guard)
					lost.by(s)
					time.Sleep(time.Second) // connections are made anew
					get(a, "2", "1")
					pause := time.Duration(0)
					if lost.forgets {
						pause = guarded
					}
					spend(t, pause, pause+2*time.Second, func() { get(b, "2", "2") })
					get(a, "3", "1")
					get(a, "3", "2", client.WithFreshAnswer())
				})
			})
		}
	}
}
