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

// remaining is what the server says that is left of the lease.
func (e *env) remaining(c *client.Client, name string) time.Duration {
	e.TB.Helper()
	return e.inspect(c, name).Remaining
}

func TestRenewFor(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: 10 * time.Second})
		l := e.Take(c, "a")
		require.NoError(t, l.RenewFor(e.Ctx, time.Hour))
		require.Greater(t, l.Remaining(), 50*time.Minute)
		require.Greater(t, e.remaining(c, "a"), 59*time.Minute)
		require.NoError(t, l.Renew(e.Ctx))
		require.Greater(t, e.remaining(c, "a"), 59*time.Minute, "later renewals are for as long")
		fence := l.Fence()
		require.NoError(t, l.RenewFor(e.Ctx, time.Second))
		require.LessOrEqual(t, l.Remaining(), time.Second, "shorter at once")
		require.Greater(t, e.remaining(c, "a"), 59*time.Minute, "here only")
		before := e.calls()
		e.Eventually("renewals", func() bool { return e.calls() >= before+4 })
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
		short := e.Take(b, "a", client.WithOwner("job"), client.WithLease(time.Second))
		require.Greater(t, e.remaining(a, "a"), testbed.Long/2, "who joins shortens nothing")
		require.NoError(t, short.RenewFor(e.Ctx, 2*time.Second))
		require.LessOrEqual(t, short.Remaining(), 2*time.Second)
		require.Greater(t, e.remaining(a, "a"), testbed.Long/2)
		e.Release(short)
		require.Greater(t, e.remaining(a, "a"), testbed.Long/2)
		require.Greater(t, long.Remaining(), testbed.Long/2)
		require.NoError(t, long.RenewFor(e.Ctx, 2*time.Second))
		require.LessOrEqual(t, long.Remaining(), 2*time.Second)
		require.Greater(t, e.remaining(a, "a"), testbed.Long/2, "alone it cannot either: it may be a late call of the other one")
		e.Release(long)
	})
}

func TestMinHold(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		const least = time.Second
		c, other := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		taken := time.Now()
		l := e.Take(c, "a", client.WithMinHold(least))
		started := time.Now()
		e.Release(l)
		require.Less(t, time.Since(started), least, "Release does not wait for it")
		require.ErrorIs(t, e.Ended(l.Context()), client.ErrReleased)
		for _, of := range []*client.Client{c, other} {
			_, err := of.TryAcquire(e.Ctx, "a", client.WithFreshAnswer())
			only(t, client.ErrBusy, err, "the interval is not over")
		}
		o := testbed.Got(t, e.Acquire(e.Ctx, other, "a", client.WithMinHold(10*time.Millisecond)))
		require.NoError(t, o.Err)
		require.GreaterOrEqual(t, o.At.Sub(taken), least)
		require.Less(t, o.At.Sub(taken), 10*time.Second, "and not the lease")
		since := time.Now()
		e.Eventually("longer than that", func() bool { return time.Since(since) > 20*time.Millisecond })
		e.Release(o.Lock)
		require.False(t, e.Exists("a"), "held for long enough: free at once")
	})
}

func TestMinHoldIsNotPassedOnEarlier(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		const least = 500 * time.Millisecond
		cfg := client.Config{Lease: testbed.Long, MinHold: least}
		holder, c := e.open(cfg), e.open(cfg)
		taken := time.Now()
		l := e.Take(holder, "a")
		next := e.Acquire(e.Ctx, c, "a")
		e.Line(c, "a", 1)
		third := e.Acquire(e.Ctx, c, "a") // behind it in the process
		e.Release(l)
		o := e.Locked(next)
		require.GreaterOrEqual(t, o.At.Sub(taken), least)
		e.Release(o.Lock)
		o = e.Locked(third)
		require.GreaterOrEqual(t, o.At.Sub(taken), 2*least)
		e.Release(o.Lock)
	})
}

// The context of the call bounds the wait only.
func TestWithLockContext(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: testbed.Long})
		type key struct{}
		parent, end := context.WithCancelCause(context.WithValue(e.Ctx, key{}, "request"))
		for _, acquire := range []func(context.Context, string, ...client.Option) (*client.Lock, error){c.Acquire, c.TryAcquire} {
			wait, cancel := context.WithTimeout(e.Ctx, testbed.Within)
			l, err := acquire(wait, "a", client.WithLockContext(parent))
			require.NoError(t, err)
			cancel()
			require.NoError(t, l.Context().Err(), "the wait's end is not the lock's")
			_, bounded := l.Context().Deadline()
			want, _ := parent.Deadline()
			got, _ := l.Context().Deadline()
			require.True(t, bounded)
			require.Equal(t, want, got)
			require.Equal(t, "request", l.Context().Value(key{}))
			inner, err := c.TryAcquire(l.Context(), "a")
			require.NoError(t, err, "it carries the lock")
			e.Release(inner)
			e.Release(l)
		}
		l := e.Take(c, "a", client.WithLockContext(parent))
		shutdown := errors.New("shutdown")
		end(shutdown)
		require.ErrorIs(t, e.Ended(l.Context()), shutdown)
		e.Release(l)
		_, err := c.TryAcquire(e.Ctx, "a", client.WithLockContext(parent))
		only(t, context.Canceled, err, "it would have ended already")
		e.Eventually("nothing is left", func() bool { return !e.Exists("a") })
	})
}

func TestWithoutReentry(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: testbed.Long})
		outer := e.Take(c, "a")
		_, err := c.TryAcquire(outer.Context(), "a", client.WithoutReentry())
		only(t, client.ErrBusy, err)
		_, err = c.Acquire(outer.Context(), "a", client.WithoutReentry(), client.WithMaxWait(50*time.Millisecond))
		only(t, client.ErrTimeout, err)
		// What was started under the lock takes it for itself after that.
		waiting := e.Acquire(context.WithoutCancel(outer.Context()), c, "a", client.WithoutReentry())
		e.Release(outer)
		next := e.Locked(waiting).Lock
		require.Greater(t, next.Fence(), outer.Fence())
		inner, err := c.TryAcquire(next.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, next.Fence(), inner.Fence(), "the innermost is re-entered")
		require.Equal(t, next.Fence(), client.Fence(inner.Context()))
		e.Release(inner)
		e.Release(next)
	})
}

func TestNoPrefix(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, other := e.open(client.Config{NoPrefix: true, Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		whole := e.Prefix + "a" // the name is the key
		l := e.Take(c, whole)
		require.Equal(t, whole, l.Name())
		require.True(t, e.Exists("a"))
		_, err := other.TryAcquire(e.Ctx, "a")
		only(t, client.ErrBusy, err, "the same lock by another name")
		waiting := e.Acquire(e.Ctx, other, "a")
		e.Line(other, "a", 1)
		e.Release(l)
		l = e.Locked(waiting).Lock
		waiting = e.Acquire(e.Ctx, c, whole)
		e.Line(other, "a", 1)
		e.Release(l)
		e.Release(e.Locked(waiting).Lock)
	})
}

func TestWithOptions(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{})
		batch := client.WithOptions(client.WithLease(testbed.Long), client.WithoutRenewal(), client.WithLabel("batch"))
		l := e.Take(c, "a", batch)
		require.Equal(t, "batch", e.inspect(c, "a").Holder.Label)
		require.Greater(t, l.Remaining(), testbed.Long/2)
		e.Release(l)
		l = e.Take(c, "a", batch, client.WithLabel("the last one counts"))
		require.Equal(t, "the last one counts", e.inspect(c, "a").Holder.Label)
		e.Release(l)
		e.Release(e.Take(c, "a", client.WithOptions()))
	})
}

func TestRedisIsTheClientThatOpenMade(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{})
		l := e.Take(c, "a")
		r := c.Redis()
		n, err := r.Do(e.Ctx, r.B().Exists().Key(e.Prefix+"a").Build()).AsInt64()
		require.NoError(t, err)
		require.Equal(t, int64(1), n)
		e.Release(l)
		theirs, err := client.New(e.Redis, client.Config{})
		require.NoError(t, err)
		defer theirs.Close()
		require.True(t, theirs.Redis() == e.Redis)
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
	})
}

// A lock that is held while nobody's process has it: taken by one that ends, and released by
// another one.
func TestReleaseOwnerAfterItsProcessIsGone(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		web, worker := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		e.Take(web, "a", client.WithOwner("order 42"))
		web.Close()
		require.True(t, e.Exists("a"))
		require.NoError(t, worker.ReleaseOwner(e.Ctx, "a", "order 42"))
		require.False(t, e.Exists("a"))
	})
}

func TestALabelBesideAnOwnerIsRefused(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Label: "of the config"})
		_, err := c.TryAcquire(e.Ctx, "a", client.WithOwner("job"), client.WithLabel("mine"))
		require.ErrorIs(t, err, client.ErrArgument)
		require.ErrorContains(t, err, "WithLabel")
		e.Release(e.Take(c, "a", client.WithOwner("job")))
	})
}
