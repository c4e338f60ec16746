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
