package conformance

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// ends polls when the server says the lease ends, in its milliseconds; 0 when nobody has it.
func (e *env) ends(name string) int64 {
	n, err := e.Do(name, "HGET", "until").AsInt64()
	if err != nil {
		return 0
	}
	return n
}

// renewals blocks until the server saw the lease start anew n times.
func (e *env) renewals(name string, n int) {
	e.TB.Helper()
	last, seen := e.ends(name), 0
	e.Eventually("renewals", func() bool {
		now := e.ends(name)
		if now > last {
			last, seen = now, seen+1
		}
		return seen >= n
	})
}

func TestALockIsRenewedOverManyLeases(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		const lease = 6 * time.Second // a busy machine stands still for seconds at times
		c := e.open(client.Config{Lease: lease, RenewEvery: lease / 8})
		l := e.Take(c, "a")
		started := time.Now()
		e.renewals("a", 8)
		e.Eventually("three leases", func() bool { return time.Since(started) > 3*lease })
		require.NoError(t, l.Context().Err())
		require.Positive(t, l.Remaining())
		require.Equal(t, l.Fence(), e.inspect(c, "a").Fence)
		e.Release(l)
		require.False(t, e.Exists("a"))
	})
}

func TestRenewEvery(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: testbed.Long, RenewEvery: 30 * time.Millisecond})
		l := e.Take(c, "a")
		e.renewals("a", 3)
		e.Release(l)
		c = e.open(client.Config{Lease: testbed.Long, NoRenewal: true})
		l = e.Take(c, "b", client.WithRenewal(30*time.Millisecond))
		e.renewals("b", 3)
		e.Release(l)
	})
}

func TestWithoutRenewalTheContextEndsBeforeTheKey(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: 300 * time.Millisecond})
		for range 3 {
			l := e.Take(c, "a", client.WithoutRenewal())
			until := time.UnixMilli(e.ends("a"))
			require.ErrorIs(t, e.Ended(l.Context()), client.ErrExpired)
			held := time.Now().Before(until) // this machine's clock is the server's
			cause := as[*client.LostError](e, e.Ended(l.Context()))
			require.ErrorIs(t, cause, client.ErrLost)
			require.Equal(t, l.Fence(), cause.Fence)
			require.Equal(t, l.Owner(), cause.Owner)
			require.Zero(t, l.Remaining())
			require.ErrorIs(t, l.Renew(e.Ctx), client.ErrExpired, "an ended lease is not revived")
			err := l.Release(e.Ctx)
			require.ErrorIs(t, err, client.ErrLost)
			e.Eventually("the key ends", func() bool { return !e.Exists("a") })
			if held {
				return
			}
		}
		t.Fatal("three times the server's lease had ended when its context did")
	})
}

func TestRenewByHand(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: testbed.Long, NoRenewal: true})
		l := e.Take(c, "a")
		e.Eventually("the lease gets shorter", func() bool { return l.Remaining() < 58*time.Second+900*time.Millisecond })
		before, onServer := l.Remaining(), e.ends("a")
		require.NoError(t, l.Renew(e.Ctx))
		require.Greater(t, l.Remaining(), before)
		require.Greater(t, e.ends("a"), onServer)
		e.Release(l)
	})
}

func TestMaxRenewalsEndTheWorkAndThenTheLock(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, other := e.open(client.Config{Lease: 4 * time.Second, RenewEvery: 200 * time.Millisecond, Grace: time.Second}), e.open(client.Config{Lease: testbed.Long})
		started := time.Now()
		l := e.Take(c, "a", client.WithMaxRenewals(2))
		waiting := e.Acquire(e.Ctx, other, "a")
		cause := e.Ended(l.Context())
		require.ErrorIs(t, cause, client.ErrMaxRenewals)
		require.ErrorIs(t, cause, client.ErrLost)
		require.GreaterOrEqual(t, time.Since(started), 500*time.Millisecond, "two renewals and the time to a third")
		require.Empty(t, waiting, "it is held through the grace")
		next := e.Locked(waiting).Lock
		require.ErrorIs(t, l.Release(e.Ctx), client.ErrMaxRenewals)
		require.NoError(t, next.Renew(e.Ctx))
		e.Release(next)
	})
}

func TestMaxHoldEndsTheWorkAndThenTheLock(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, other := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		taken := time.Now()
		l := e.Take(c, "a", client.WithMaxHold(200*time.Millisecond, 300*time.Millisecond))
		waiting := e.Acquire(e.Ctx, other, "a")
		require.ErrorIs(t, e.Ended(l.Context()), client.ErrMaxHold)
		ended := time.Since(taken)
		require.GreaterOrEqual(t, ended, 200*time.Millisecond)
		require.Less(t, ended, 5*time.Second)
		o := testbed.Got(e.TB, waiting)
		require.NoError(t, o.Err)
		require.GreaterOrEqual(t, o.At.Sub(taken), 500*time.Millisecond, "the grace is the work's time to stop")
		require.Less(t, o.At.Sub(taken), 10*time.Second, "and not the lease")
		e.Release(o.Lock)

		// Work that stops at once gives the lock back at once, and is told why it was stopped.
		l = e.Take(c, "a", client.WithMaxHold(20*time.Millisecond, testbed.Long))
		require.ErrorIs(t, e.Ended(l.Context()), client.ErrMaxHold)
		require.True(t, e.inspect(c, "a").Held)
		require.ErrorIs(t, l.Release(e.Ctx), client.ErrMaxHold)
		require.False(t, e.Exists("a"))
	})
}

func TestRenewalIsOfOneGoroutine(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: 10 * time.Second, RenewEvery: 500 * time.Millisecond})
		const n = 1000
		locks := make([]*client.Lock, n)
		take := func(from, to int) {
			var all sync.WaitGroup
			for i := from; i < to; i++ {
				all.Go(func() {
					l, err := c.TryAcquire(e.Ctx, client.Name("many", i))
					if err != nil {
						t.Error(err)
						return
					}
					locks[i] = l
				})
			}
			all.Wait()
		}
		take(0, n)
		require.False(t, t.Failed())
		for _, i := range []int{0, n / 2, n - 1} {
			e.renewals(client.Name("many", i), 2)
		}
		for _, l := range locks {
			require.NoError(t, l.Context().Err())
		}
		var all sync.WaitGroup
		for _, l := range locks {
			all.Go(func() {
				if err := l.Release(e.Ctx); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.False(t, e.Exists(client.Name("many", n-1)))
	})
}
