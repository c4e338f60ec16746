package conformance

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

func TestTryAcquireTakesAFreeLock(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{})
		l := e.Take(c, "a")
		require.Equal(t, "a", l.Name())
		require.NotEmpty(t, l.Owner())
		require.NoError(t, l.Context().Err())
		require.InDelta(t, 30*time.Second, l.Remaining(), float64(5*time.Second), "the default lease")
		require.Less(t, l.Remaining(), 30*time.Second-300*time.Millisecond, "less a margin")
		require.True(t, e.Exists("a"), "the key is prefix + name")
		e.Release(l)
		require.False(t, e.Exists("a"), "nothing of it is left")
		require.ErrorIs(t, e.Ended(l.Context()), client.ErrReleased)
		require.Zero(t, l.Remaining())
		require.ErrorIs(t, l.Release(e.Ctx), client.ErrNotHeld)
		require.ErrorIs(t, l.Renew(e.Ctx), client.ErrNotHeld)
		next := e.Take(c, "a")
		require.Greater(t, next.Fence(), l.Fence())
		require.NotEqual(t, next.Owner(), l.Owner())
		e.Release(next)
	})
}

func TestTryAcquireSaysWhoHasIt(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, other := e.open(client.Config{Label: "from config"}), e.open(client.Config{})
		l := e.Take(c, "a", client.WithLabel("night shift: a:b"), client.WithLease(testbed.Long))
		started := time.Now()
		_, err := other.TryAcquire(e.Ctx, "a")
		require.Less(t, time.Since(started), 5*time.Second, "at once")
		only(t, client.ErrBusy, err)
		busy := as[*client.BusyError](e, err)
		require.Equal(t, "a", busy.Name)
		require.Equal(t, l.Owner(), busy.Holder.Owner)
		require.Equal(t, os.Getpid(), busy.Holder.PID)
		require.NotEmpty(t, busy.Holder.Host)
		require.Equal(t, "night shift: a:b", busy.Holder.Label)
		require.InDelta(t, testbed.Long, busy.Remaining, float64(testbed.Within))
		require.Zero(t, busy.Waiters)
		require.Contains(t, err.Error(), `"a"`)
		require.Contains(t, err.Error(), "night shift")
		_, err = c.TryAcquire(e.Ctx, "a")
		require.ErrorIs(t, err, client.ErrBusy, "the same client under a fresh context contends too")
		e.Release(l)
		l = e.Take(c, "b")
		_, err = other.TryAcquire(e.Ctx, "b")
		require.Equal(t, "from config", as[*client.BusyError](e, err).Holder.Label)
		e.Release(l)
	})
}

func TestTryAcquireOvertakesNobody(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, waiter := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		l := e.Take(c, "a")
		waiting := e.Acquire(e.Ctx, waiter, "a")
		e.Line(c, "a", 1)
		stop := make(chan struct{})
		overtook := make(chan int, 1)
		go func() {
			n := 0
			for {
				select {
				case <-stop:
					overtook <- n
					return
				default:
				}
				if l, err := c.TryAcquire(e.Ctx, "a"); err == nil {
					n++
					_ = l.Release(e.Ctx)
				}
			}
		}()
		e.Release(l)
		next := e.Locked(waiting).Lock
		close(stop)
		require.Zero(t, testbed.Got(e.TB, overtook))
		e.Release(next)
	})
}

func TestTryAcquireUnderAnEndedContext(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{})
		ctx, cancel := context.WithCancel(e.Ctx)
		cancel()
		_, err := c.TryAcquire(ctx, "a")
		only(t, context.Canceled, err)
		e.Eventually("nothing is left held", func() bool { return !e.Exists("a") })
		e.Release(e.Take(c, "a"))
	})
}

func TestALockEndsWithTheCallersContext(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{})
		ctx, cancel := context.WithCancelCause(e.Ctx)
		l, err := c.TryAcquire(ctx, "a")
		require.NoError(t, err)
		cancel(os.ErrDeadlineExceeded)
		require.ErrorIs(t, e.Ended(l.Context()), os.ErrDeadlineExceeded)
		require.NoError(t, l.Release(ctx), "Release goes on when its context is cancelled")
		require.False(t, e.Exists("a"))
	})
}
