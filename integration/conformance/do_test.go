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
			require.True(t, e.inspect(c, "a").Held)
			return nil
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

func TestDoReportsALostLock(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: testbed.Long, RenewEvery: 100 * time.Millisecond})
		for _, own := range []error{nil, errMine} {
			v, err := client.Value(e.Ctx, c, "a", func(ctx context.Context) (string, error) {
				require.NoError(t, e.Do("a", "DEL").Error())
				e.Ended(ctx) // the next renewal finds out, or the server's tracking
				_, err := c.TryAcquire(ctx, "a")
				require.ErrorIs(t, err, client.ErrTaken, "what is lost is not re-entered")
				return "done anyway", own
			})
			require.Equal(t, "done anyway", v)
			if own != nil {
				require.True(t, err == own, "fn's error is untouched")
				continue
			}
			only(t, client.ErrLost, err)
			require.ErrorIs(t, err, client.ErrTaken)
			require.Equal(t, "a", as[*client.LostError](e, err).Name)
		}
		e.Eventually("the attempt to re-enter left nothing", func() bool { return !e.Exists("a") })
	})
}

func TestDoReportsALossThatOnlyTheReleaseShows(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, other := e.open(client.Config{}), e.open(client.Config{})
		for name, end := range map[string]func(){
			"deleted": func() { require.NoError(t, e.Do("deleted", "DEL").Error()) },
			"broken": func() {
				_, err := other.Break(e.Ctx, "broken", "for a test")
				require.NoError(t, err)
			},
			"another's": func() {
				require.NoError(t, e.Do("another's", "DEL").Error())
				e.Take(other, "another's", client.WithFreshAnswer()) // the one before was deleted
			},
		} {
			for _, own := range []error{nil, errMine} {
				v, err := client.TryValue(e.Ctx, c, name, func(context.Context) (int, error) { end(); return 7, own })
				require.Equal(t, 7, v)
				if own != nil {
					require.True(t, err == own, "fn's error is untouched")
				} else {
					require.ErrorIs(t, err, client.ErrLost, name)
				}
				require.NoError(t, e.Do(name, "DEL").Error())
			}
		}
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
