// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

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
