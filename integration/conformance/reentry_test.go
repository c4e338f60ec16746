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
