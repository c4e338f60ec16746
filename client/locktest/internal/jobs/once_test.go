// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
)

func TestOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		a, b := s.Client(client.Config{Label: "first"}), s.Client(client.Config{})
		run, err := a.Once(ctx, "report", time.Hour, nothing)
		require.NoError(t, err)
		require.True(t, run.Ran)
		require.Equal(t, "first", run.By.Label)
		require.InDelta(t, time.Hour, run.End, float64(time.Second))

		time.Sleep(20 * time.Minute)
		for _, c := range []*client.Client{a, b} {
			other, err := c.Once(ctx, "report", time.Hour, func(context.Context) error { panic("twice") })
			require.NoError(t, err)
			require.False(t, other.Ran)
			require.Equal(t, "first", other.By.Label)
			require.InDelta(t, 40*time.Minute, other.End, float64(time.Second))
		}

		a.Close() // the interval is the server's to keep
		time.Sleep(39 * time.Minute)
		run, err = b.Once(ctx, "report", time.Hour, func(context.Context) error { panic("twice") })
		require.NoError(t, err)
		require.False(t, run.Ran)
		time.Sleep(3 * time.Minute)
		wrong := errors.New("the disk is full")
		run, err = b.Once(ctx, "report", time.Hour, func(ctx context.Context) error {
			require.NotZero(t, client.Fence(ctx))
			return wrong
		})
		require.Equal(t, wrong, err)
		require.True(t, run.Ran)
		run, err = b.Once(ctx, "report", time.Hour, nothing)
		require.NoError(t, err)
		require.False(t, run.Ran, "fn that failed ran in this interval")

		_, err = b.Once(ctx, "long", time.Hour, func(ctx context.Context) error {
			other, err := s.Client(client.Config{}).Once(ctx, "long", time.Hour, nothing)
			require.False(t, other.Ran)
			require.InDelta(t, 30*time.Second, other.End, float64(time.Second), "the lease, while fn runs elsewhere")
			return err
		})
		require.NoError(t, err)
	})
}

func TestOnceThatRunsForLongerThanItsInterval(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		a, b := s.Client(client.Config{RenewEvery: 9 * time.Second}), s.Client(client.Config{})
		var work sync.WaitGroup
		work.Go(func() {
			run, err := a.Once(ctx, "report", time.Second, func(ctx context.Context) error {
				time.Sleep(10 * time.Second)
				return ctx.Err()
			})
			require.NoError(t, err)
			require.True(t, run.Ran)
			require.Zero(t, run.End)
		})
		for range 9 {
			time.Sleep(time.Second)
			run, err := b.Once(ctx, "report", time.Second, nothing)
			require.NoError(t, err)
			require.False(t, run.Ran)
		}
		work.Wait()
		run, err := b.Once(ctx, "report", time.Second, nothing)
		require.NoError(t, err)
		require.True(t, run.Ran)
	})
}

func TestOnceErrors(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c := s.Client(client.Config{Lease: time.Second})
		for _, every := range []time.Duration{0, -time.Second, time.Millisecond, 366 * 24 * time.Hour} {
			_, err := c.Once(ctx, "x", every, nothing)
			require.ErrorIs(t, err, client.ErrArgument)
			require.ErrorContains(t, err, "every must be from")
			value, err := c.OnceValue(ctx, "x", every, nil)
			require.ErrorIs(t, err, client.ErrArgument)
			require.ErrorContains(t, err, `once value "x"`)
			require.ErrorContains(t, err, "every must be from")
			require.Nil(t, value)
		}
		_, err := c.Once(ctx, "x", time.Hour, nothing, client.WithShared())
		require.ErrorIs(t, err, client.ErrArgument, "it would run in every process")
		require.ErrorContains(t, err, "WithShared")
		s.Stop()
		run, err := c.Once(ctx, "x", time.Hour, nothing)
		require.ErrorIs(t, err, client.ErrUnreachable)
		require.False(t, run.Ran)
		s.Start()
		_, err = c.Once(ctx, "x", time.Minute, func(context.Context) error {
			s.Take("x", time.Hour)
			return nil
		})
		require.ErrorIs(t, err, client.ErrLost)
	})
}
