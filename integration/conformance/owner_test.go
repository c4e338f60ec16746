// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// One owner string may wait for several locks. A message names the owner and not the lock, so a
// grant of one of them is no grant of the other.
func TestAGrantOfOneLockIsNotOneOfAnother(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		a, b := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		x, y := e.Take(a, "{l}x"), e.Take(a, "{l}y")
		first := e.Acquire(e.Ctx, b, "{l}x", client.WithOwner("job 7"))
		second := e.Acquire(e.Ctx, b, "{l}y", client.WithOwner("job 7"))
		e.Line(a, "{l}x", 1)
		e.Line(a, "{l}y", 1)
		e.Release(y)
		l := e.Locked(second).Lock
		require.Equal(t, "job 7", l.Owner())
		e.Release(l)
		require.Empty(t, first)
		require.NoError(t, x.Context().Err())
		e.Release(x)
		e.Release(e.Locked(first).Lock)
	})
}

// Work that one process begins and another one ends, by an owner string that both know.
func TestReleaseOwner(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		web, worker := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		l, err := web.Acquire(e.Ctx, "a", client.WithOwner("order 42"), client.WithRenewal(200*time.Millisecond))
		require.NoError(t, err)
		e.Take(worker, "a", client.WithOwner("order 42"))
		require.Equal(t, 2, e.inspect(web, "a").Holds)
		require.ErrorIs(t, worker.ReleaseOwner(e.Ctx, "a", "order 43"), client.ErrNotHeld)
		waiting := e.Acquire(e.Ctx, worker, "a")
		e.Line(web, "a", 1)
		require.NoError(t, worker.ReleaseOwner(e.Ctx, "a", "order 42"))
		next := e.Locked(waiting).Lock
		require.Greater(t, next.Fence(), l.Fence(), "all its holds are gone")
		require.ErrorIs(t, e.Ended(l.Context()), client.ErrLost)
		err = worker.ReleaseOwner(e.Ctx, "a", "order 42")
		require.ErrorIs(t, err, client.ErrNotHeld)
		only(t, client.ErrInvalid, err)
		e.Release(next)
		require.ErrorIs(t, worker.ReleaseOwner(e.Ctx, "a", "order 42"), client.ErrNotHeld, "of a free lock")
		require.ErrorIs(t, worker.ReleaseOwner(e.Ctx, "a", ""), client.ErrArgument)
		require.ErrorIs(t, worker.ReleaseOwner(e.Ctx, "", "order 42"), client.ErrArgument)

		l = e.Take(worker, "a", client.WithOwner("order 42"))
		require.NoError(t, worker.ReleaseOwner(e.Ctx, "a", "order 42"))
		require.Error(t, l.Context().Err(), "its own client's end before it returns")
		require.ErrorIs(t, l.Release(e.Ctx), client.ErrLost)

		e.Take(web, "a", client.WithOwner("order 42"))
		web.Close()
		require.True(t, e.Exists("a"), "nobody's process has it")
		require.NoError(t, worker.ReleaseOwner(e.Ctx, "a", "order 42"))
		require.False(t, e.Exists("a"))
	})
}

// Whoever gives up waiting under an owner's name must not give back what that owner holds elsewhere. A lock
// that was taken without WithOwner is its holder's alone: its process passes it on, and who joined would be
// beside.
func TestAnOwnersHoldIsItsOwn(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		a, b := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		blocker := e.Take(a, "{a}other")
		waiting := e.Acquire(e.Ctx, b, "{a}other") // b is subscribed now
		e.Line(a, "{a}other", 1)
		first, plain := e.Take(a, "{a}", client.WithOwner("job 42")), e.Take(a, "{a}plain")
		ctx, cancel := context.WithCancel(e.Ctx)
		cancel()
		_, err := b.Acquire(ctx, "{a}", client.WithOwner("job 42"))
		require.ErrorIs(t, err, context.Canceled)
		for _, c := range []*client.Client{a, b} {
			_, err := c.Acquire(e.Ctx, "{a}plain", client.WithOwner(plain.Owner()))
			require.ErrorIs(t, err, client.ErrArgument)
			_, err = c.TryAcquire(e.Ctx, "{a}plain", client.WithOwner(plain.Owner()))
			require.ErrorIs(t, err, client.ErrArgument)
		}
		e.Release(blocker)
		e.Release(e.Locked(waiting).Lock)
		b.Close() // waits for its clean-up
		for _, l := range []*client.Lock{first, plain} {
			require.NoError(t, l.Renew(e.Ctx))
			require.Equal(t, 1, e.inspect(a, l.Name()).Holds)
			e.Release(l)
		}
	})
}
