package jobs

import (
	"context"
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
		s.Free("a")
		s.Free("c")
		_, err = c.AcquireAll(ctx, []string{"a", "b"}, client.WithPolling(1, time.Second))
		require.ErrorIs(t, err, client.ErrBusy)
		s.Free("a")
		_, err = c.AcquireAll(ctx, nil)
		require.ErrorIs(t, err, client.ErrArgument)
		_, err = c.AcquireAll(ctx, []string{"a", ""})
		require.ErrorIs(t, err, client.ErrArgument)
		_, err = c.AcquireAll(ctx, []string{"a"}, client.WithMaxWait(-1))
		require.ErrorIs(t, err, client.ErrArgument)
		s.Free("a")

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
			s.Free("a")
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
