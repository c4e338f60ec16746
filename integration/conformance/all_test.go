package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// Locks that are free take one call each.
func TestAcquireAllTakesACallEach(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, other := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		e.Release(e.Take(c, "{1}:warm"))
		for _, names := range [][]string{{"{1}:c", "{1}:a", "{1}:b"}, {"c", "a", "b"}} {
			before := e.calls()
			all, err := c.AcquireAll(e.Ctx, names)
			require.NoError(t, err)
			require.Equal(t, before+3, e.calls())
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

// One of them is another's: the others stay free, also for a moment, until that one is had.
func TestAcquireAllWaitsForOneThatIsAnothers(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, other := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		l := e.Take(other, "{1}:a")
		done := make(chan error, 1)
		go func() {
			all, err := c.AcquireAll(e.Ctx, []string{"{1}:a", "{1}:b"})
			if err == nil {
				err = all.Release(e.Ctx)
			}
			done <- err
		}()
		e.Line(other, "{1}:a", 1)
		require.False(t, e.Exists("{1}:b"))
		e.Release(l)
		require.NoError(t, <-done)
		require.False(t, e.Exists("{1}:a"))
		require.False(t, e.Exists("{1}:b"))
	})
}
