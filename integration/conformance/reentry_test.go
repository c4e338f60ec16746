package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

func TestTheLocksContextReenters(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: testbed.Long})
		outer := e.Take(c, "a")
		before := e.calls()
		inner, err := c.Acquire(outer.Context(), "a")
		require.NoError(t, err)
		third, err := c.TryAcquire(inner.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, before, e.calls(), "in memory")
		require.Equal(t, outer.Fence(), inner.Fence(), "re-entering does not change the token")
		require.Equal(t, outer.Owner(), third.Owner())
		require.Equal(t, 1, e.inspect(c, "a").Holds, "the server sees one hold")

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

func TestNestedDo(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: testbed.Long})
		depth := 0
		var down func(ctx context.Context) error
		down = func(ctx context.Context) error {
			if depth++; depth == 5 {
				require.Equal(t, 1, e.inspect(c, "a").Holds)
				return errMine
			}
			return c.Do(ctx, "a", down)
		}
		require.True(t, down(e.Ctx) == errMine)
		require.False(t, e.Exists("a"))
	})
}

func TestReentryOfALockThatIsGone(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, other := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		outer := e.Take(c, "a")
		require.NoError(t, e.Do("a", "DEL").Error())
		thief := e.Take(other, "a")
		require.ErrorIs(t, outer.Renew(e.Ctx), client.ErrTaken)
		_, err := c.Acquire(outer.Context(), "a")
		only(t, client.ErrLost, err)
		require.ErrorIs(t, err, client.ErrTaken)
		require.ErrorIs(t, e.Ended(outer.Context()), client.ErrTaken)
		require.ErrorIs(t, outer.Release(e.Ctx), client.ErrLost)
		require.NoError(t, thief.Renew(e.Ctx), "the new holder is untouched")
		e.Release(thief)
	})
}

func TestWithOwnerJoinsAcrossClients(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		a, b := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		first := e.Take(a, "a", client.WithOwner("job 42"))
		require.Equal(t, "job 42", first.Owner())
		second, err := b.Acquire(e.Ctx, "a", client.WithOwner(first.Owner()))
		require.NoError(t, err)
		require.Equal(t, first.Fence(), second.Fence())
		require.Equal(t, 2, e.inspect(a, "a").Holds)
		_, err = b.TryAcquire(e.Ctx, "a", client.WithOwner("job 43"))
		require.ErrorIs(t, err, client.ErrBusy)
		e.Release(first)
		require.True(t, e.inspect(a, "a").Held)
		require.NoError(t, second.Renew(e.Ctx))
		e.Release(second)
		require.False(t, e.Exists("a"))

		// One waits in line under a chosen name.
		plain := e.Take(a, "a")
		waiting := e.Acquire(e.Ctx, b, "a", client.WithOwner("job 44"))
		e.Line(a, "a", 1)
		e.Release(plain)
		next := e.Locked(waiting).Lock
		require.Equal(t, "job 44", next.Owner())
		require.Equal(t, 1, e.inspect(a, "a").Holds)
		e.Release(next)
		require.False(t, e.Exists("a"))
	})
}

// Whoever gives up waiting under an owner's name must not give back what that owner holds
// elsewhere.
func TestAWaitUnderASharedOwnerThatEndsTakesNothingAway(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		a, b := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		blocker := e.Take(a, "{a}other")
		waiting := e.Acquire(e.Ctx, b, "{a}other") // b is subscribed now
		e.Line(a, "{a}other", 1)
		first := e.Take(a, "{a}", client.WithOwner("job 42"))
		ctx, cancel := context.WithCancel(e.Ctx)
		cancel()
		_, err := b.Acquire(ctx, "{a}", client.WithOwner("job 42"))
		require.ErrorIs(t, err, context.Canceled)
		e.Release(blocker)
		e.Release(e.Locked(waiting).Lock)
		b.Close() // waits for its clean-up
		require.NoError(t, first.Renew(e.Ctx))
		require.Equal(t, 1, e.inspect(a, "{a}").Holds)
		e.Release(first)
	})
}

// A lock that was taken without WithOwner is its holder's alone: its process passes it on, and who
// joined would be beside.
func TestAPlainLockCannotBeJoined(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		a, b := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		blocker := e.Take(a, "{a}other")
		waiting := e.Acquire(e.Ctx, b, "{a}other") // b is subscribed now
		e.Line(a, "{a}other", 1)
		plain := e.Take(a, "{a}")
		for _, c := range []*client.Client{a, b} {
			_, err := c.Acquire(e.Ctx, "{a}", client.WithOwner(plain.Owner()))
			require.ErrorIs(t, err, client.ErrArgument)
			only(t, client.ErrInvalid, err)
			_, err = c.TryAcquire(e.Ctx, "{a}", client.WithOwner(plain.Owner()))
			require.ErrorIs(t, err, client.ErrArgument)
		}
		require.Equal(t, 1, e.inspect(a, "{a}").Holds)
		require.NoError(t, plain.Renew(e.Ctx))
		e.Release(plain)
		e.Release(blocker)
		e.Release(e.Locked(waiting).Lock)
	})
}
