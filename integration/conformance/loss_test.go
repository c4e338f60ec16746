// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

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

func TestNameKeepsPartsApart(t *testing.T) {
	require.Equal(t, "order:42", client.Name("order", 42))
	require.Empty(t, client.Name("order", new(int64)), "its text is an address")
	require.NotEqual(t, client.Name("a:b", "c"), client.Name("a", "b:c"))
	require.NotEqual(t, client.Name("a%3Ab"), client.Name("a:b"))
}
