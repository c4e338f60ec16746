// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// Who ends an owner's holds is told whether there were any. Those of its own client end before it returns.
func TestReleaseOwner(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: testbed.Long})
		l := e.Take(c, "a", client.WithOwner("order 42"))
		err := c.ReleaseOwner(e.Ctx, "a", "order 43")
		require.ErrorIs(t, err, client.ErrNotHeld)
		only(t, client.ErrInvalid, err)
		require.NoError(t, c.ReleaseOwner(e.Ctx, "a", "order 42"))
		require.Error(t, l.Context().Err())
		require.ErrorIs(t, l.Release(e.Ctx), client.ErrLost)
		require.ErrorIs(t, c.ReleaseOwner(e.Ctx, "a", "order 42"), client.ErrNotHeld, "of a free lock")
		require.ErrorIs(t, c.ReleaseOwner(e.Ctx, "a", ""), client.ErrArgument)
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
		limited, shared := e.Take(a, "{a}limited", client.WithLimit(2)), e.Take(a, "{a}shared", client.WithShared())
		for _, c := range []*client.Client{a, b} {
			for _, l := range []*client.Lock{plain, limited, shared} {
				only(t, client.ErrInvalid, c.ReleaseOwner(e.Ctx, l.Name(), l.Owner()))
				require.ErrorIs(t, c.ReleaseOwner(e.Ctx, l.Name(), l.Owner()), client.ErrArgument)
			}
			_, err := c.Acquire(e.Ctx, "{a}plain", client.WithOwner(plain.Owner()))
			require.ErrorIs(t, err, client.ErrArgument)
			_, err = c.TryAcquire(e.Ctx, "{a}plain", client.WithOwner(plain.Owner()))
			require.ErrorIs(t, err, client.ErrArgument)
		}
		e.Release(blocker)
		e.Release(e.Locked(waiting).Lock)
		b.Close() // waits for its clean-up
		for _, l := range []*client.Lock{first, plain, limited, shared} {
			require.NoError(t, l.Renew(e.Ctx))
			require.Equal(t, 1, e.inspect(a, l.Name()).Holds)
			e.Release(l)
		}
	})
}

// Re-entry is of the same client, of a lock that is held, and to no higher level.
func TestWhatIsNotReentered(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, other := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{})
		l := e.Take(c, "a")
		_, err := c.Acquire(l.Context(), "a", client.WithGuard(testbed.Long))
		only(t, client.ErrInvalid, err, "what is not guarded is not re-entered as if it were")
		_, err = other.TryAcquire(l.Context(), "a")
		require.ErrorIs(t, err, client.ErrBusy)
		e.Release(l)
		_, err = c.TryAcquire(context.WithoutCancel(l.Context()), "a")
		require.ErrorIs(t, err, client.ErrNotHeld)
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

// Client-side caching goes on after a restart of the server, through refused connections.
func TestCachingSurvivesARestart(t *testing.T) {
	e := own(t)
	c, holder := e.open(client.Config{}), e.open(client.Config{Lease: testbed.Long})
	cached := func() bool {
		for range 5 { // the connection may have to be made, and the key to be noticed
			_, _ = c.TryAcquire(e.Ctx, "a")
		}
		before := e.calls()
		for range 20 {
			_, err := c.TryAcquire(e.Ctx, "a")
			if !errors.Is(err, client.ErrBusy) {
				return false
			}
		}
		return e.calls() == before
	}
	e.Take(holder, "a")
	e.Eventually("from memory", cached)
	require.NoError(t, e.D.Nodes()[0].Kill())
	for refused := 0; refused < 5; {
		if _, err := c.TryAcquire(e.Ctx, "a"); errors.Is(err, client.ErrUnreachable) {
			refused++
		}
	}
	require.NoError(t, e.D.Nodes()[0].Restart())
	e.D.Load(t)
	e.Eventually("held again", func() bool { _, err := holder.TryAcquire(e.Ctx, "a"); return err == nil })
	e.Eventually("from memory again", cached)
}

func TestBreakIsToldAtOnceToWhoWaited(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		a, b, operator := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{})
		l := e.Take(a, "a")
		first := e.Acquire(e.Ctx, b, "a")
		e.Line(a, "a", 1)
		e.Release(l)
		l = e.Locked(first).Lock
		second := e.Acquire(e.Ctx, a, "a")
		e.Line(a, "a", 1)
		started := time.Now()
		_, err := operator.Break(e.Ctx, "a", "my turn")
		require.NoError(t, err)
		next := e.Locked(second).Lock
		require.Greater(t, next.Fence(), l.Fence())
		require.ErrorIs(t, e.Ended(l.Context()), client.ErrBroken)
		require.Less(t, time.Since(started), 10*time.Second, "not at the renewal, after 20 s")
		e.Release(next)
	})
}

// A lock is lost when its key is gone or another's, also one of an owner of the same name. Whatever asks
// next finds out, and leaves the next holder alone.
func TestDelByAnOperator(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, other := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		job := client.WithOwner("job")
		for _, taken := range []struct{ ours, next []client.Option }{
			{},
			{nil, []client.Option{client.WithFreshAnswer()}},
			{[]client.Option{job}, []client.Option{job, client.WithFreshAnswer()}},
		} {
			for what, find := range map[string]func(l *client.Lock) error{
				"a renewal": func(l *client.Lock) error { return e.Ended(l.Context()) },
				"Renew":     func(l *client.Lock) error { return l.Renew(e.Ctx) },
				"Release":   func(l *client.Lock) error { return l.Release(e.Ctx) },
			} {
				if what == "Release" && taken.ours != nil {
					continue // it would end a hold of the owner's
				}
				l := e.Take(c, what, append(taken.ours, client.WithRenewal(200*time.Millisecond))...)
				require.NoError(t, e.Do(what, "DEL").Error())
				var next *client.Lock
				if taken.next != nil {
					next = e.Take(other, what, taken.next...)
				}
				require.ErrorIs(t, find(l), client.ErrTaken, what)
				if what != "Release" {
					cause := e.Ended(l.Context())
					require.ErrorIs(t, cause, client.ErrTaken, what)
					require.Equal(t, l.Fence(), as[*client.LostError](e, cause).Fence)
					_, err := c.Acquire(l.Context(), what)
					require.ErrorIs(t, err, client.ErrTaken, "what is lost is not re-entered")
					only(t, client.ErrLost, err)
					require.ErrorIs(t, l.Release(e.Ctx), client.ErrTaken)
				}
				if next != nil {
					require.NoError(t, next.Renew(e.Ctx))
					e.Release(next)
				}
			}
		}
	})
}
