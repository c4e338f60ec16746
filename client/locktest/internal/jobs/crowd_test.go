// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// Limited and shared locks.

// crowd is who works at the same time.
type crowd struct {
	mu     sync.Mutex
	slots  map[int]int64 // the token of who has it
	tokens map[int64]bool
	most   int
	wrong  []string
}

func (c *crowd) enter(l *client.Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slots == nil {
		c.slots, c.tokens = map[int]int64{}, map[int64]bool{}
	}
	if c.slots[l.Slot()] != 0 || c.tokens[l.Fence()] || l.Slot() < 1 {
		c.wrong = append(c.wrong, fmt.Sprintf("slot %d, token %d beside %v", l.Slot(), l.Fence(), c.slots))
	}
	c.slots[l.Slot()], c.tokens[l.Fence()] = l.Fence(), true
	c.most = max(c.most, len(c.slots))
}

func (c *crowd) leave(l *client.Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.slots, l.Slot())
}

// slots are those of a lock's holders, as the server says.
func slots(t *testing.T, c *client.Client, name string) (taken []int) {
	t.Helper()
	all, err := c.Holders(ctx, name)
	require.NoError(t, err)
	for _, h := range all {
		taken = append(taken, h.Slot)
	}
	return taken
}

// waits begins an Acquire, and returns when n wait.
func waits(s *locktest.Server, c *client.Client, name string, n int, opts ...client.Option) <-chan *client.Lock {
	got := make(chan *client.Lock, 1)
	go func() {
		defer close(got)
		if l, err := c.Acquire(ctx, name, opts...); err == nil {
			got <- l
		}
	}()
	queued(s, name, n)
	return got
}

// counted is an observer of the functions that a server runs.
func counted(t *testing.T, latency time.Duration, test func(t *testing.T, w *redis.World, n *redis.Node, calls func(function string) int)) {
	var mu sync.Mutex
	ran := map[string]int{}
	opt := redis.Options{Latency: latency, Hooks: redis.Hooks{Call: func(c redis.Call) {
		mu.Lock()
		defer mu.Unlock()
		ran[c.Function]++
	}}}
	bed.In(t, opt, func(t *testing.T, w *redis.World) {
		test(t, w, bed.Loaded(t, w, "s:6379"), func(function string) int {
			mu.Lock()
			defer mu.Unlock()
			return ran[function]
		})
	})
}

// The limit is the request's, and the line is one for all: one that does not fit keeps those behind it
// waiting.
func TestOneLineForAll(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		a, b := s.Client(client.Config{}), s.Client(client.Config{})
		two := []*client.Lock{holding(t, a, "x", client.WithLimit(3)), holding(t, b, "x", client.WithLimit(2))}
		_, err := b.TryAcquire(ctx, "x", client.WithLimit(2))
		require.ErrorIs(t, err, client.ErrBusy)
		one := waits(s, a, "x", 1, client.WithLimit(1))
		_, err = b.TryAcquire(ctx, "x", client.WithLimit(3))
		require.EqualError(t, err, fmt.Sprintf(`holdfast: lock "x": held by others, limited, lease %v, 1 waiting`, remaining(t, err)))
		three := waits(s, b, "x", 2, client.WithLimit(3))
		alone := waits(s, a, "x", 3)
		readers := []<-chan *client.Lock{waits(s, a, "x", 4, client.WithShared()), waits(s, b, "x", 5, client.WithShared())}
		require.NoError(t, two[0].Release(ctx))
		synctest.Wait()
		require.Empty(t, one)
		require.NoError(t, two[1].Release(ctx))
		first, second := <-one, <-three
		require.Equal(t, []int{1, 2}, []int{first.Slot(), second.Slot()})
		require.NoError(t, second.Release(ctx))
		require.NoError(t, first.Release(ctx))
		writer := <-alone
		require.Zero(t, writer.Slot())
		synctest.Wait()
		require.Empty(t, readers[0])
		require.NoError(t, writer.Release(ctx))
		r0, r1 := <-readers[0], <-readers[1]
		require.ElementsMatch(t, []int{1, 2}, []int{r0.Slot(), r1.Slot()})
		_, err = a.TryAcquire(ctx, "x")
		require.ErrorContains(t, err, "held by others, shared")
		_, err = a.Acquire(ctx, "x", client.WithLimit(9), client.WithMaxWait(time.Second))
		require.ErrorIs(t, err, client.ErrTimeout)
		require.ErrorContains(t, err, "(held by others, shared, place 1 in line)")
	})
}

func remaining(t *testing.T, err error) time.Duration {
	t.Helper()
	var busy *client.BusyError
	require.ErrorAs(t, err, &busy)
	require.Zero(t, busy.Holder)
	require.Equal(t, functions.WhyLimited, busy.Why)
	return busy.Remaining
}

func TestInspectAndHoldersOfACrowd(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c, other := s.Client(client.Config{Label: "a"}), s.Client(client.Config{})
		require.Empty(t, slots(t, c, "x"))
		var locks []*client.Lock
		for range 250 {
			locks = append(locks, holding(t, c, "x", client.WithShared()))
		}
		require.NoError(t, locks[3].Release(ctx))
		last := locks[249]
		s.HeldBy(last)
		want := client.Info{Name: "x", Held: true, Holds: 249, Fence: last.Fence(), Why: "shared"}
		for range 2 {
			for _, ask := range []func(context.Context, string) (client.Info, error){other.Inspect, other.InspectCached} {
				info, err := ask(ctx, "x")
				require.NoError(t, err)
				require.Positive(t, info.Remaining)
				info.Remaining, info.Age = 0, 0
				require.Equal(t, want, info)
			}
		}
		all, err := other.Holders(ctx, "x")
		require.NoError(t, err)
		require.Len(t, all, 249)
		for _, h := range all {
			l := locks[h.Slot-1]
			require.Equal(t, l.Owner(), h.Holder.Owner)
			require.Equal(t, "a", h.Holder.Label)
			require.Equal(t, l.Fence(), h.Fence)
			require.Positive(t, h.Remaining)
		}
		require.False(t, slices.ContainsFunc(all, func(h client.HolderInfo) bool { return h.Slot == 4 }))

		alone := holding(t, c, "y")
		all, err = other.Holders(ctx, "y")
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Equal(t, []any{1, alone.Owner(), alone.Fence()}, []any{all[0].Slot, all[0].Holder.Owner, all[0].Fence})
	})
}
