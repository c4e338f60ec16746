// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

func TestMaxWaitEndsTheWait(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		const most = 3 * time.Second          // in which it joins the line, on a busy machine too
		const least = most - time.Millisecond // the clocks of two processors can differ by microseconds
		holder, c := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long, MaxWait: most})
		l := e.Take(holder, "a", client.WithLabel("holder"))
		started := time.Now()
		_, err := c.Acquire(e.Ctx, "a")
		waited := time.Since(started)
		require.GreaterOrEqual(t, waited, least)
		require.Less(t, waited, most+10*time.Second)
		only(t, client.ErrTimeout, err)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "MaxWait is no deadline of the caller's")
		require.Contains(t, err.Error(), "holder", "and by whom")
		e.Line(c, "a", 0)
		_, err = c.Acquire(e.Ctx, "a", client.WithMaxWait(1))
		require.ErrorIs(t, err, client.ErrTimeout, "the option is for the call")
		ctx, cancel := context.WithCancelCause(e.Ctx)
		waiting := e.Acquire(ctx, c, "a", client.WithMaxWait(0))
		e.Line(c, "a", 1)
		cancel(errors.New("shutting down"))
		err = testbed.Got(e.TB, waiting).Err
		only(t, context.Canceled, err)
		require.ErrorContains(t, err, "shutting down", "it is shown, and of no other kind")
		e.Line(c, "a", 0)
		e.Release(l)
	})
}

func TestGiveUpEarly(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e *env) {
		cfg := client.Config{Lease: testbed.Long, GiveUpEarly: true}
		c, second, other := e.open(cfg), e.open(cfg), e.open(cfg)
		l := e.Take(c, "a")
		// The server learns from handovers how long a turn takes: this one takes 6 s at least.
		next := e.Acquire(e.Ctx, second, "a")
		e.Line(c, "a", 1)
		third := e.Acquire(e.Ctx, other, "a")
		e.Line(c, "a", 2)
		since := time.Now()
		e.Eventually("6 s", func() bool { return time.Since(since) > 6*time.Second })
		e.Release(l)
		l = e.Locked(next).Lock
		_, err := c.Acquire(e.Ctx, "a", client.WithMaxWait(4500*time.Millisecond))
		only(t, client.ErrBusy, err, "it did not wait")
		require.Contains(t, err.Error(), "too late")
		require.Equal(t, 1, as[*client.WaitError](e, err).Last.Waiters)
		e.Line(c, "a", 1)
		// The deadline of the patient is beyond what a Duration can count.
		ctx, cancel := context.WithDeadline(context.WithoutCancel(e.Ctx), time.Now().AddDate(400, 0, 0))
		defer cancel()
		patient := e.Acquire(ctx, c, "a")
		e.Line(c, "a", 2)
		e.Release(l)
		_ = e.Locked(third).Lock.Release(e.Ctx) // a server that is busy for two seconds has not confirmed it yet
		e.Release(e.Locked(patient).Lock)
	})
}

func TestPolling(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: testbed.Long})
		// held by a caller that looks at nothing: a client's look, after a second, counts as a call
		require.NoError(t, e.fcall(functions.Acquire, "a", "by hand", "600000").Error())
		before, started := e.calls(), time.Now()
		_, err := c.Acquire(e.Ctx, "a", client.WithPolling(3, 20*time.Millisecond))
		require.GreaterOrEqual(t, time.Since(started), 40*time.Millisecond)
		only(t, client.ErrBusy, err, "its tries are used up")
		require.Zero(t, as[*client.WaitError](e, err).Position, "not in line")
		require.Contains(t, err.Error(), "3 tries")
		require.Equal(t, 3, e.calls()-before)
		_, err = c.Acquire(e.Ctx, "a", client.WithPolling(1, time.Hour))
		only(t, client.ErrBusy, err, "one try has no interval")
		_, err = c.Acquire(e.Ctx, "a", client.WithPolling(1000, time.Hour), client.WithMaxWait(2*time.Second))
		only(t, client.ErrTimeout, err)
	})
}
