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

var errMine = errors.New("of the caller's own")

func TestDoHoldsTheLockWhileItRuns(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{})
		err := c.Do(e.Ctx, "a", func(ctx context.Context) error {
			require.NoError(t, ctx.Err())
			return c.Do(ctx, "a", func(context.Context) error {
				require.Equal(t, 1, e.inspect(c, "a").Holds, "the inner one re-enters")
				return nil
			})
		})
		require.NoError(t, err)
		require.False(t, e.Exists("a"))

		err = c.Do(e.Ctx, "a", func(context.Context) error { return errMine })
		require.True(t, err == errMine, "untouched, not wrapped")
		require.False(t, e.Exists("a"))

		require.PanicsWithValue(t, "boom", func() {
			_ = c.Do(e.Ctx, "a", func(context.Context) error { panic("boom") })
		})
		require.False(t, e.Exists("a"), "a panic releases")

		ctx, cancel := context.WithCancel(e.Ctx)
		err = c.Do(ctx, "a", func(ctx context.Context) error {
			cancel()
			return ctx.Err()
		})
		require.True(t, err == context.Canceled)
		require.False(t, e.Exists("a"), "a cancelled caller releases")
	})
}

func TestDoDoesNotRunWithoutTheLock(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{})
		l := e.Take(c, "a")
		fn := func(context.Context) error { t.Error("it ran"); return nil }
		err := c.Do(e.Ctx, "a", fn, client.WithMaxWait(1))
		only(t, client.ErrTimeout, err)
		v, err := client.TryValue(e.Ctx, c, "a", func(ctx context.Context) (int, error) { return 7, fn(ctx) })
		only(t, client.ErrBusy, err, "TryValue does not wait")
		require.Zero(t, v)
		require.ErrorIs(t, c.Do(e.Ctx, "", fn), client.ErrArgument)
		e.Release(l)
	})
}

func TestValueAndWrapKeepTheResult(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{})
		v, err := client.Value(e.Ctx, c, "a", func(context.Context) (int, error) { return 7, nil })
		require.NoError(t, err)
		require.Equal(t, 7, v)
		v, err = client.TryValue(e.Ctx, c, "a", func(context.Context) (int, error) { return 8, errMine })
		require.True(t, err == errMine)
		require.Equal(t, 8, v, "with an error too")

		type order struct{ shop, id string }
		ship := client.Wrap(c, func(o order) string {
			if o.id == "" {
				return ""
			}
			return client.Name("order", o.shop, o.id)
		}, func(ctx context.Context, o order) (string, error) {
			require.True(t, e.inspect(c, "order:s%3A1:"+o.id).Held)
			return "shipped " + o.id, errMine
		})
		text, err := ship(e.Ctx, order{"s:1", "42"})
		require.True(t, err == errMine)
		require.Equal(t, "shipped 42", text)
		_, err = ship(e.Ctx, order{})
		require.ErrorIs(t, err, client.ErrArgument, "an empty name is no shared default")
	})
}

func TestNameKeepsPartsApart(t *testing.T) {
	require.Equal(t, "order:42", client.Name("order", 42))
	require.NotEqual(t, client.Name("a:b", "c"), client.Name("a", "b:c"))
	require.NotEqual(t, client.Name("a%3Ab"), client.Name("a:b"))
}

func TestDoReportsALostLock(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, other := e.open(client.Config{Lease: testbed.Long, RenewEvery: 100 * time.Millisecond}), e.open(client.Config{})
		remove := func(name string) { require.NoError(t, e.Do(name, "DEL").Error()) }
		for name, end := range map[string]func(ctx context.Context, name string){
			"by its renewal":  func(ctx context.Context, name string) { remove(name); e.Ended(ctx) },
			"by its release":  func(_ context.Context, name string) { remove(name) },
			"which is broken": func(_ context.Context, name string) { _, _ = other.Break(e.Ctx, name, "for a test") },
			"which is another's": func(_ context.Context, name string) {
				remove(name)
				e.Take(other, name, client.WithFreshAnswer())
			},
		} {
			for _, own := range []error{nil, errMine} {
				v, err := client.TryValue(e.Ctx, c, name, func(ctx context.Context) (string, error) {
					end(ctx, name)
					return "done anyway", own
				}, client.WithFreshAnswer())
				require.Equal(t, "done anyway", v)
				if own != nil {
					require.True(t, err == own, "fn's error is untouched")
				} else {
					only(t, client.ErrLost, err, name)
					require.Equal(t, name, as[*client.LostError](e, err).Name)
				}
				remove(name)
			}
		}
	})
}

// Locks that are free take one call each.
func TestAcquireAllTakesACallEach(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, other := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		e.Release(e.Take(c, "{1}:warm"))
		for _, names := range [][]string{{"{1}:c", "{1}:a", "{1}:b"}, {"c", "a", "b"}} {
			before, began := e.calls(), time.Now()
			all, err := c.AcquireAll(e.Ctx, names)
			require.NoError(t, err)
			if n := e.calls(); time.Since(began) < 900*time.Millisecond { // after a second the holder looks
				require.Equal(t, before+3, n)
			}
			for _, name := range names {
				_, err := other.TryAcquire(e.Ctx, name, client.WithFreshAnswer())
				require.ErrorIs(t, err, client.ErrBusy)
				require.NoError(t, all.Lock(name).Renew(e.Ctx))
			}
			require.NoError(t, all.Release(e.Ctx))
			for _, name := range names {
				require.False(t, e.Exists(name))
			}
		}
	})
}
