package client_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

// An acquisition that a ReleaseOwner of the same client gave back asks again: its caller has lost nothing.
func TestAnAcquisitionThatAReleaseOwnerCrossesAsksAgain(t *testing.T) {
	c := opened(t)
	for range 300 {
		var both sync.WaitGroup
		both.Go(func() {
			if err := c.ReleaseOwner(background, t.Name(), "job"); err != nil {
				require.ErrorIs(t, err, client.ErrNotHeld)
			}
		})
		var l *client.Lock
		var err error
		both.Go(func() { l, err = c.TryAcquire(background, t.Name(), client.WithOwner("job")) })
		both.Wait()
		require.NoError(t, err)
		if err := l.Release(background); !errors.Is(err, client.ErrLost) {
			require.NoError(t, err)
		}
	}
}

// A call under a context that is over is refused, also one that would re-enter.
func TestNobodyReentersUnderAContextThatIsOver(t *testing.T) {
	c := opened(t)
	l, err := c.Acquire(background, t.Name())
	require.NoError(t, err)
	canceled, cancel := context.WithCancel(l.Context())
	cancel()
	late, cancel := context.WithDeadline(l.Context(), time.Now())
	defer cancel()
	for ctx, want := range map[context.Context]error{canceled: context.Canceled, late: client.ErrTimeout} {
		_, err = c.TryAcquire(ctx, t.Name())
		require.ErrorIs(t, err, want)
		_, err = c.Acquire(ctx, t.Name())
		require.ErrorIs(t, err, want)
	}
	require.NoError(t, l.Release(background))
}
