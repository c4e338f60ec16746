package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// A guarded lock is used like any other, once the server remembers for long enough.
func TestGuardedLocks(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		const lease, guard = time.Second, 1500 * time.Millisecond
		level := client.WithOptions(client.WithLease(lease), client.WithGuard(guard))
		a, b := e.open(client.Config{}), e.open(client.Config{})
		first, err := a.TryAcquire(e.Ctx, "x", level, client.WithFreshAnswer())
		if err != nil {
			var busy *client.BusyError
			require.ErrorAs(t, err, &busy)
			require.Empty(t, busy.Holder.Owner)
			require.Positive(t, busy.Remaining)
			require.LessOrEqual(t, busy.Remaining, guard)
			require.ErrorContains(t, err, "nobody gets it yet")
			first, err = a.Acquire(e.Ctx, "x", level)
		}
		require.NoError(t, err)
		inner, err := a.Acquire(first.Context(), "x", level)
		require.NoError(t, err, "re-entry is in memory")
		e.Release(inner)
		require.NoError(t, first.Renew(e.Ctx))
		only(t, client.ErrInvalid, first.RenewFor(e.Ctx, guard+time.Millisecond))
		require.NoError(t, first.RenewFor(e.Ctx, guard))
		e.tour(a, b, first, level)
		kept := e.Take(a, "x", level, client.WithMinHold(time.Second))
		e.Release(kept)
		_, err = b.TryAcquire(e.Ctx, "x", level, client.WithFreshAnswer())
		only(t, client.ErrBusy, err)
		e.Release(e.Locked(e.Acquire(e.Ctx, b, "x", level)).Lock)
	})
}

// A lock that is not guarded cannot be re-entered as one. Nobody is refused because of what another one
// asked for: a guarded line takes a longer lease, and keeps the longest as its guard.
func TestGuardsDoNotMix(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		a, b := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		l := e.Take(a, "x")
		_, err := a.Acquire(l.Context(), "x", client.WithGuard(2*testbed.Long))
		only(t, client.ErrInvalid, err)
		require.ErrorIs(t, err, client.ErrArgument)
		ctx, cancel := context.WithCancel(e.Ctx)
		waiting := e.Acquire(ctx, b, "x", client.WithGuard(testbed.Long))
		e.Line(b, "x", 1)
		c := e.open(client.Config{})
		longer := e.Acquire(ctx, c, "x", client.WithLease(2*testbed.Long))
		e.Line(b, "x", 2)
		e.Release(l)
		cancel()
		only(t, context.Canceled, testbed.Got(t, waiting).Err)
		only(t, context.Canceled, testbed.Got(t, longer).Err)
	})
}

func TestGuardIsChecked(t *testing.T) {
	eachFlavour(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: testbed.Long})
		for _, bad := range []client.Option{
			client.WithGuard(testbed.Long - 1), client.WithGuard(-1), client.WithGuard(1 << 62),
		} {
			_, err := c.TryAcquire(e.Ctx, "x", bad)
			only(t, client.ErrInvalid, err)
			require.ErrorIs(t, err, client.ErrArgument)
			require.ErrorContains(t, err, "Guard must be")
		}
	})
}
