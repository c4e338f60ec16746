package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

func TestBreakIsToldAtOnceAfterARenewal(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, operator := e.open(client.Config{Lease: testbed.Long, RenewEvery: 200 * time.Millisecond}), e.open(client.Config{})
		l := e.Take(c, "a")
		e.renewals("a", 1)
		info, err := operator.Break(e.Ctx, "a", "deploy stuck")
		require.NoError(t, err)
		require.True(t, info.Held)
		require.Equal(t, l.Owner(), info.Holder.Owner)
		require.Equal(t, l.Fence(), info.Fence)
		cause := e.Ended(l.Context())
		require.ErrorIs(t, cause, client.ErrBroken)
		require.ErrorIs(t, cause, client.ErrLost)
		require.Contains(t, as[*client.LostError](e, cause).Reason, "deploy stuck")
		require.Contains(t, cause.Error(), "deploy stuck")
		require.ErrorIs(t, l.Renew(e.Ctx), client.ErrBroken)
		require.ErrorIs(t, l.Release(e.Ctx), client.ErrBroken)
		info, err = operator.Break(e.Ctx, "a", "")
		require.NoError(t, err)
		require.False(t, info.Held, "nothing to break")
	})
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

func TestDelByAnOperator(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: time.Second})
		l := e.Take(c, "a")
		e.renewals("a", 1)
		require.NoError(t, e.Do("a", "DEL").Error())
		cause := e.Ended(l.Context())
		require.ErrorIs(t, cause, client.ErrTaken)
		require.Equal(t, l.Fence(), as[*client.LostError](e, cause).Fence)
		require.ErrorIs(t, l.Release(e.Ctx), client.ErrTaken)
	})
}

func TestReleaseOfALockThatIsAnothersChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, other := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		l := e.Take(c, "a")
		require.NoError(t, e.Do("a", "DEL").Error())
		thief := e.Take(other, "a")
		require.ErrorIs(t, l.Renew(e.Ctx), client.ErrTaken)
		require.ErrorIs(t, e.Ended(l.Context()), client.ErrTaken)
		require.ErrorIs(t, l.Release(e.Ctx), client.ErrTaken)
		require.Equal(t, thief.Owner(), e.inspect(c, "a").Holder.Owner)
		e.Release(thief)
		l = e.Take(c, "a")
		require.NoError(t, e.Do("a", "DEL").Error())
		thief = e.Take(other, "a")
		require.ErrorIs(t, l.Release(e.Ctx), client.ErrTaken, "Release itself finds out too")
		require.NoError(t, thief.Renew(e.Ctx))
		e.Release(thief)
	})
}
