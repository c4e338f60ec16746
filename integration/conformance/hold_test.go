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

func TestTheLocksContextReenters(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: testbed.Long})
		outer := e.Take(c, "a")
		before, began := e.calls(), time.Now()
		inner, err := c.Acquire(outer.Context(), "a")
		require.NoError(t, err)
		third, err := c.TryAcquire(inner.Context(), "a")
		require.NoError(t, err)
		if n := e.calls(); time.Since(began) < 900*time.Millisecond { // after a second the holder looks, which counts
			require.Equal(t, before, n, "in memory")
		}
		require.Equal(t, outer.Fence(), inner.Fence(), "re-entering does not change the token")
		require.Equal(t, outer.Owner(), third.Owner())
		require.Equal(t, 1, e.inspect(c, "a").Holds, "the server sees one hold")
		_, err = c.Acquire(outer.Context(), "a", client.WithGuard(testbed.Long))
		only(t, client.ErrInvalid, err, "what is not guarded is not re-entered as if it were")

		_, err = c.Acquire(e.Ctx, "a", client.WithMaxWait(20*time.Millisecond))
		require.ErrorIs(t, err, client.ErrTimeout, "a fresh context contends")
		other := e.open(client.Config{})
		_, err = other.TryAcquire(outer.Context(), "a")
		require.ErrorIs(t, err, client.ErrBusy, "another client contends")
		b, err := c.TryAcquire(outer.Context(), "b")
		require.NoError(t, err, "another name is another lock")
		require.NotEqual(t, outer.Owner(), b.Owner())
		e.Release(b)

		e.Release(outer)
		require.ErrorIs(t, e.Ended(outer.Context()), client.ErrReleased)
		require.True(t, e.inspect(c, "a").Held, "holds of the inner ones are left")
		e.Release(third)
		require.True(t, e.inspect(c, "a").Held)
		require.Positive(t, inner.Remaining())
		e.Release(inner)
		require.False(t, e.Exists("a"))
		_, err = c.TryAcquire(context.WithoutCancel(inner.Context()), "a")
		require.ErrorIs(t, err, client.ErrNotHeld, "a released lock is not re-entered")
	})
}

func TestRenewFor(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: 10 * time.Second})
		l := e.Take(c, "a")
		require.NoError(t, l.RenewFor(e.Ctx, time.Hour))
		require.Greater(t, l.Remaining(), 50*time.Minute)
		require.Greater(t, e.inspect(c, "a").Remaining, 59*time.Minute)
		require.NoError(t, l.Renew(e.Ctx))
		require.Greater(t, e.inspect(c, "a").Remaining, 59*time.Minute, "later renewals are for as long")
		fence := l.Fence()
		require.NoError(t, l.RenewFor(e.Ctx, 6*time.Second))
		require.LessOrEqual(t, l.Remaining(), 6*time.Second, "shorter at once")
		require.Greater(t, e.inspect(c, "a").Remaining, 59*time.Minute, "here only")
		before := e.calls()
		e.Eventually("renewals", func() bool { return e.calls() >= before+3 })
		require.NoError(t, l.Context().Err(), "it is renewed as often as the new lease needs")
		require.Equal(t, fence, l.Fence())
		for _, bad := range []time.Duration{-1, time.Millisecond, 367 * 24 * time.Hour} {
			err := l.RenewFor(e.Ctx, bad)
			require.ErrorIs(t, err, client.ErrArgument)
			require.ErrorContains(t, err, bad.String())
		}
		e.Release(l)
		require.ErrorIs(t, l.RenewFor(e.Ctx, time.Second), client.ErrNotHeld)
	})
}

// A lease that several share never ends earlier than any of them was told.
func TestRenewForOfAJoinedLock(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		a, b := e.open(client.Config{Lease: testbed.Long, NoRenewal: true}), e.open(client.Config{Lease: testbed.Long, NoRenewal: true})
		long := e.Take(a, "a", client.WithOwner("job"))
		before := e.Until("a")
		e.Eventually("it is renewed by hand", func() bool { return long.Renew(e.Ctx) == nil && e.Until("a") > before })
		short := e.Take(b, "a", client.WithOwner("job"), client.WithLease(5*time.Second))
		require.Greater(t, e.inspect(a, "a").Remaining, testbed.Long/2, "who joins shortens nothing")
		require.NoError(t, short.RenewFor(e.Ctx, 5*time.Second))
		require.LessOrEqual(t, short.Remaining(), 5*time.Second)
		require.Greater(t, e.inspect(a, "a").Remaining, testbed.Long/2)
		e.Release(short)
		require.Greater(t, e.inspect(a, "a").Remaining, testbed.Long/2)
		require.Greater(t, long.Remaining(), testbed.Long/2)
		require.NoError(t, long.RenewFor(e.Ctx, 5*time.Second))
		require.LessOrEqual(t, long.Remaining(), 5*time.Second)
		require.Greater(t, e.inspect(a, "a").Remaining, testbed.Long/2, "alone it cannot either: it may be a late call of the other one")
		e.Release(long)
	})
}
