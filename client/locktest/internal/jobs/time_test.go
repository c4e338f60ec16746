// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
)

func TestABusyAnswerIsNotBelievedBeyondTheLease(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		const lease = 400 * time.Millisecond
		c := s.Client(client.Config{})
		holding(t, s.Client(client.Config{}), "x", client.WithLease(lease), client.WithoutRenewal())
		for range 3 { // until the answer comes from memory
			_, err := c.TryAcquire(ctx, "x")
			require.ErrorIs(t, err, client.ErrBusy)
		}
		time.Sleep(lease)
		require.NoError(t, c.TryDo(ctx, "x", nothing))
	})
}

// What is reported is the whole wait, in memory and in the server's line.
func TestAWaitIsReportedWhole(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		holding(t, s.Client(client.Config{}), "x")
		c, leader := s.Client(client.Config{}), make(chan error, 1)
		go func() {
			_, err := c.Acquire(ctx, "x", client.WithMaxWait(2*time.Second))
			leader <- err
		}()
		queued(s, "x", 1)
		_, err := c.Acquire(ctx, "x", client.WithMaxWait(3*time.Second))
		require.ErrorIs(t, <-leader, client.ErrTimeout)
		var stopped *client.WaitError
		require.ErrorAs(t, err, &stopped)
		require.Equal(t, 3*time.Second, stopped.Waited)
	})
}

func TestEveryHolderHasItsOwnMaximum(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		const most = 10 * time.Second
		c, limit, next := s.Client(client.Config{}), client.WithMaxHold(most, most), make(chan *client.Lock)
		l := holding(t, c, "x", limit)
		for range 2 {
			go func() { next <- holding(t, c, "x", limit) }()
		}
		synctest.Wait()
		for range 2 {
			time.Sleep(most / 2)
			require.NoError(t, l.Release(ctx))
			l = <-next
		}
		spend(t, most-time.Millisecond, most+time.Millisecond, func() { <-l.Context().Done() })
		require.ErrorIs(t, context.Cause(l.Context()), client.ErrMaxHold)
		require.ErrorIs(t, l.Release(ctx), client.ErrMaxHold)
		freed(s, "x")
	})
}

// A lock whose context has ended, and that nobody releases, is given back: others are not kept out for
// as long as the client lives.
func TestALockWhoseContextEndedIsGivenBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		call, cancel := context.WithCancel(ctx)
		l, err := s.Client(client.Config{}).Acquire(call, "x")
		require.NoError(t, err)
		cancel()
		require.ErrorIs(t, l.Context().Err(), context.Canceled)
		next := holding(t, s.Client(client.Config{}), "x")
		require.Greater(t, next.Fence(), l.Fence())
		require.ErrorIs(t, l.Release(ctx), client.ErrAbandoned)
	})
}
