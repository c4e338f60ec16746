package jobs

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
)

func TestAcquireAll(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c := s.Client(client.Config{})
		all, err := c.AcquireAll(ctx, []string{"c", "a", "b", "a"})
		require.NoError(t, err)
		for _, name := range []string{"a", "b", "c"} {
			s.HeldBy(all.Lock(name))
			again, err := c.Acquire(all.Context(), name)
			require.NoError(t, err)
			require.Equal(t, all.Lock(name).Fence(), again.Fence(), "it re-entered")
			require.NoError(t, again.Release(ctx))
		}
		require.Nil(t, all.Lock("d"))
		require.NoError(t, all.Context().Err())
		require.NoError(t, all.Release(ctx))
		require.ErrorIs(t, context.Cause(all.Context()), client.ErrReleased)
		for _, name := range []string{"a", "b", "c"} {
			s.Free(name)
		}
		require.ErrorIs(t, all.Release(ctx), client.ErrNotHeld)
	})
}

func TestTheFirstLossEndsTheContextOfAll(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "b", "c"} {
		bubble(t, func(t *testing.T, s *locktest.Server) {
			c := s.Client(client.Config{})
			err := c.DoAll(ctx, []string{"a", "b", "c"}, func(ctx context.Context) error {
				s.Take(name, time.Minute)
				<-ctx.Done()
				require.ErrorIs(t, context.Cause(ctx), client.ErrTaken)
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
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c := s.Client(client.Config{})
		s.Take("b", time.Hour)
		began := time.Now()
		_, err := c.AcquireAll(ctx, []string{"a", "b", "c"}, client.WithMaxWait(5*time.Second))
		require.ErrorIs(t, err, client.ErrTimeout)
		require.InDelta(t, 5*time.Second, time.Since(began), float64(100*time.Millisecond))
		freed(s, "a")
		freed(s, "c")
		_, err = c.AcquireAll(ctx, []string{"a", "b"}, client.WithPolling(1, time.Second))
		require.ErrorIs(t, err, client.ErrBusy)
		freed(s, "a")
		_, err = c.AcquireAll(ctx, nil)
		require.ErrorIs(t, err, client.ErrArgument)
		_, err = c.AcquireAll(ctx, []string{"a", ""})
		require.ErrorIs(t, err, client.ErrArgument)
		_, err = c.AcquireAll(ctx, []string{"a"}, client.WithMaxWait(-1))
		require.ErrorIs(t, err, client.ErrArgument)
		freed(s, "a")

		// One that is held is lost while it waits for the next.
		waiting := make(chan error)
		go func() {
			_, err := c.AcquireAll(ctx, []string{"a", "b"})
			waiting <- err
		}()
		queued(s, "b", 1)
		time.Sleep(2 * time.Second) // from here on it is told
		s.Take("a", time.Minute)
		require.ErrorIs(t, <-waiting, client.ErrLost)
		queued(s, "b", 0)
	})
}

// A deadline that ends the wait for the second lock, and the context of the first, is a timeout.
func TestAllWaitUntilTheDeadline(t *testing.T) {
	t.Parallel()
	for range 50 {
		bubble(t, func(t *testing.T, s *locktest.Server) {
			c := s.Client(client.Config{})
			s.Take("b", time.Hour)
			soon, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := c.AcquireAll(soon, []string{"a", "b"})
			require.ErrorIs(t, err, client.ErrTimeout)
			freed(s, "a")
		})
	}
}

// Everybody wants some of the locks, in any order: nobody waits for ever, and nobody is inside beside
// another.
func TestAcquireAllHasNoCircle(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		names := []string{"a", "b", "c", "d"}
		var mu sync.Mutex
		inside, runs := map[string]bool{}, 0
		var work sync.WaitGroup
		clients := []*client.Client{s.Client(client.Config{}), s.Client(client.Config{})}
		for i := range 8 {
			work.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(i)))
				for range 40 {
					want := make([]string, 1+r.IntN(3))
					for j := range want {
						want[j] = names[r.IntN(len(names))]
					}
					err := clients[i%2].DoAll(ctx, want, func(context.Context) error {
						mu.Lock()
						distinct := map[string]bool{}
						for _, name := range want {
							distinct[name] = true
						}
						for name := range distinct {
							require.False(t, inside[name])
							inside[name] = true
						}
						runs++
						mu.Unlock()
						time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
						mu.Lock()
						for name := range distinct {
							inside[name] = false
						}
						mu.Unlock()
						return nil
					})
					require.NoError(t, err)
				}
			})
		}
		work.Wait()
		require.Equal(t, 8*40, runs)
	})
}

// Who finds all of them free takes them in one step: nobody sees some of them held.
func TestAllAreTakenInOneStep(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		var list notes
		c := s.Client(client.Config{Observer: list.observer()})
		names := []string{"a", "b", "c", "d"}
		all, err := c.AcquireAll(ctx, names, client.WithLockContext(context.WithValue(ctx, spanKey{}, "outer")))
		require.NoError(t, err)
		last := all.Lock("d").Fence()
		require.Equal(t, last, client.Fence(all.Context()))
		require.NoError(t, all.Release(ctx))
		seen := list.saw(t)
		require.Len(t, seen, 3*len(names))
		require.Empty(t, list.open)
		require.Empty(t, list.asks)

		// One of them is held in this process: the others are not taken before it is free.
		l, err := c.Acquire(ctx, "a")
		require.NoError(t, err)
		done := make(chan error)
		go func() { done <- c.DoAll(ctx, names, nothing) }()
		time.Sleep(time.Second)
		for _, name := range names[1:] {
			s.Free(name)
		}
		require.NoError(t, l.Release(ctx))
		require.NoError(t, <-done)

		// Under one of them the others are taken one after the other, and that one is re-entered.
		require.NoError(t, c.Do(ctx, "b", func(ctx context.Context) error { return c.DoAll(ctx, names, nothing) }))
		for _, name := range names {
			s.Free(name)
		}
	})
}

// Whatever happens to the server and the connections: nobody is inside beside another, but for a lock
// that was broken or deleted; everybody gets on; and nothing is left.
func TestAcquireAllUnderFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		bubble(t, func(t *testing.T, s *locktest.Server) {
			names := []string{"a", "b", "c", "d"}
			var mu sync.Mutex
			inside := map[string]context.Context{}
			ran, beside := 0, 0
			clients := []*client.Client{}
			for range 3 {
				clients = append(clients, s.Client(client.Config{Lease: 2 * time.Second}))
			}
			end := time.Now().Add(time.Minute)
			var work sync.WaitGroup
			for i := range 9 {
				work.Go(func() {
					r := rand.New(rand.NewPCG(seed, uint64(i)))
					for time.Now().Before(end) {
						want := []string{}
						for _, name := range names {
							if r.IntN(2) == 0 {
								want = append(want, name)
							}
						}
						within, cancel := context.WithTimeout(ctx, time.Duration(1+r.IntN(4000))*time.Millisecond)
						err := clients[i%3].DoAll(within, append(want, names[r.IntN(4)]), func(ctx context.Context) error {
							mu.Lock()
							for _, name := range want {
								if other := inside[name]; other != nil && other.Err() == nil && ctx.Err() == nil {
									beside++
								}
								inside[name] = ctx
							}
							ran++
							mu.Unlock()
							time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
							mu.Lock()
							for _, name := range want {
								if inside[name] == ctx {
									delete(inside, name)
								}
							}
							mu.Unlock()
							return nil
						})
						cancel()
						if err != nil {
							time.Sleep(time.Duration(1+r.IntN(100)) * time.Millisecond)
						}
					}
				})
			}
			r := rand.New(rand.NewPCG(seed, 99))
			for time.Now().Before(end) {
				time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
				one := clients[r.IntN(len(clients))]
				switch r.IntN(4) {
				case 0:
					s.Cut(one)
					time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
					s.Restore(one)
				case 1:
					s.Cut()
					s.Restore()
				case 2:
					s.Pause()
					time.Sleep(time.Duration(r.IntN(800)) * time.Millisecond)
					s.Resume()
				case 3:
					s.Full(true)
					time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
					s.Full(false)
				}
			}
			work.Wait()
			require.Zero(t, beside)
			require.Greater(t, ran, 100)
			time.Sleep(3 * time.Second)
			for _, name := range names {
				s.Free(name)
			}
		})
	}
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

		began := time.Now()
		l, err := c.Acquire(ctx, "a")
		require.NoError(t, err)
		time.AfterFunc(time.Second, func() { require.NoError(t, l.Release(ctx)) })
		_, err = c.AcquireAll(l.Context(), []string{"a", "b"})
		require.ErrorIs(t, err, context.Canceled)
		_, err = c.Acquire(ctx, "a")
		require.NoError(t, err)
		require.InDelta(t, 20*time.Second, time.Since(began), float64(10*time.Millisecond))
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
			began := time.Now()
			_, err := c.AcquireAll(within, names, by)
			require.ErrorIs(t, err, client.ErrUnreachable)
			require.Less(t, time.Since(began), 2300*time.Millisecond)
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
			began = time.Now()
			require.ErrorIs(t, all.Release(over), client.ErrUnreachable)
			require.Less(t, time.Since(began), 300*time.Millisecond)
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
		require.Empty(t, list.asks)
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
		require.Contains(t, log.String(), "lock=a")
		require.Contains(t, log.String(), "lock=b")
	})
}
