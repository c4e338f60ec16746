// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// A break of one ends that one: at once if it waited or is of the client that broke it, else at its
// next renewal. A break of all ends each.
func TestABreakOfACrowd(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		a, b := s.Client(client.Config{}), s.Client(client.Config{})
		first := holding(t, a, "x")
		waited := waits(s, a, "x", 1, client.WithShared())
		require.NoError(t, first.Release(ctx))
		one := <-waited
		time.Sleep(time.Minute) // who is refused soon after another was stands in line at once, and is told there
		two, three := holding(t, a, "x", client.WithShared()), holding(t, b, "x", client.WithShared())
		time.Sleep(11 * time.Second) // all have been renewed

		broken := func(l *client.Lock, least, most time.Duration) {
			t.Helper()
			spend(t, least, most, func() { <-l.Context().Done() })
			require.ErrorIs(t, context.Cause(l.Context()), client.ErrBroken)
			require.ErrorContains(t, context.Cause(l.Context()), "it hangs")
			require.ErrorIs(t, l.Renew(ctx), client.ErrBroken)
			require.ErrorIs(t, l.Release(ctx), client.ErrBroken)
		}
		_, err := b.BreakOwner(ctx, "x", "", "it hangs")
		require.ErrorIs(t, err, client.ErrArgument)
		info, err := b.BreakOwner(ctx, "x", one.Owner(), "it hangs")
		require.NoError(t, err)
		require.Equal(t, []any{true, one.Owner(), one.Fence()}, []any{info.Held, info.Holder.Owner, info.Fence})
		broken(one, 0, time.Millisecond)
		require.NoError(t, two.Context().Err())
		require.NoError(t, three.Context().Err())
		require.Equal(t, []int{2, 3}, slots(t, b, "x"))
		info, err = b.BreakOwner(ctx, "x", one.Owner(), "it hangs")
		require.NoError(t, err)
		require.False(t, info.Held, "a repeat breaks nobody's")

		info, err = b.Break(ctx, "x", "it hangs")
		require.NoError(t, err)
		require.Equal(t, client.Info{Name: "x", Held: true, Fence: three.Fence()}, info)
		broken(three, 0, time.Millisecond)
		broken(two, time.Second, 10*time.Second)
		time.Sleep(time.Second)
		s.Free("x")
	})
}

// A holder is not told of what others renew: each renews as often as is due, and nobody looks.
func TestManyHoldersRenewNoMoreThanIsDue(t *testing.T) {
	t.Parallel()
	counted(t, func(t *testing.T, w *redis.World, n *redis.Node, calls func(string) int) {
		for _, host := range []string{"a", "b"} {
			c := bed.Open(t, bed.Single(w, host, n.Addr()), client.Config{})
			for range 10 {
				l := holding(t, c, "x", client.WithShared())
				t.Cleanup(func() { require.NoError(t, l.Release(ctx)) })
				time.Sleep(37 * time.Millisecond)
			}
		}
		time.Sleep(time.Minute)
		require.LessOrEqual(t, calls(functions.Renew), 20*6)
		require.GreaterOrEqual(t, calls(functions.Renew), 20*5)
		require.Zero(t, calls(functions.Inspect))
	})
}

// With replicas too.
func TestAHolderWithReplicasDoesNotLook(t *testing.T) {
	t.Parallel()
	for _, with := range []client.Option{client.WithLimit(1), client.WithOptions()} {
		counted(t, func(t *testing.T, w *redis.World, n *redis.Node, calls func(string) int) {
			w.Replica("r:6379", n)
			c := bed.Open(t, bed.Single(w, "a", n.Addr()), client.Config{Replicas: 1})
			l := holding(t, c, "x", with)
			time.Sleep(61 * time.Second)
			require.Equal(t, 6, calls(functions.Renew))
			require.Equal(t, l.Slot() == 0, calls(functions.Inspect) > 0)
			require.NoError(t, l.Release(ctx))
		})
	}
}

// A try asks the server each time, and keeps nothing.
func TestATryOfACrowdAsksTheServer(t *testing.T) {
	t.Parallel()
	counted(t, func(t *testing.T, w *redis.World, n *redis.Node, calls func(string) int) {
		a, b := bed.Open(t, bed.Single(w, "a", n.Addr()), client.Config{}), bed.Open(t, bed.Single(w, "b", n.Addr()), client.Config{})
		l := holding(t, a, "x")
		try := func(opt client.Option) {
			_, err := b.TryAcquire(ctx, "x", opt)
			require.ErrorIs(t, err, client.ErrBusy)
		}
		for range 5 {
			try(client.WithOptions())
		}
		before := calls(functions.Acquire)
		require.Equal(t, []int{1}, slots(t, b, "x"), "a read, which changes nothing of what is known")
		try(client.WithOptions())
		require.Equal(t, before, calls(functions.Acquire), "it is refused from memory")
		for range 5 {
			try(client.WithLimit(2))
			try(client.WithShared())
		}
		require.Equal(t, before+10, calls(functions.Acquire))
		require.NoError(t, l.Release(ctx))
		next, err := b.TryAcquire(ctx, "x", client.WithLimit(2))
		require.NoError(t, err)
		require.NoError(t, next.Release(ctx))
	})
}
