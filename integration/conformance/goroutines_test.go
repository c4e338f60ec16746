package conformance

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// alone runs a test on a single server and nothing beside it, because it counts goroutines of the
// process.
func alone(t *testing.T) *env {
	t.Helper()
	d := server.Single(t)
	d.Load(t)
	return lay(t, d)
}

func TestHeldLocksCostNoGoroutines(t *testing.T) {
	e := alone(t)
	c := e.open(client.Config{Lease: testbed.Long, RenewEvery: 300 * time.Millisecond})
	const n = 1000
	locks := []*client.Lock{e.Take(c, "first")}
	e.renewals("first", 2) // the scheduler and the channel for breaks are there
	before := runtime.NumGoroutine()
	for i := range n {
		locks = append(locks, e.Take(c, client.Name(i)))
	}
	e.renewals(client.Name(n-1), 2)
	// Eight pipelines of renewals at a time come and go, of two goroutines each; nothing of it is per lock.
	require.LessOrEqual(t, runtime.NumGoroutine()-before, 24)
	e.renewals(client.Name(0), 1)
	for _, l := range locks {
		require.NoError(t, l.Context().Err())
		e.Release(l)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	e := alone(t)
	cfg := client.Config{Prefix: e.Prefix, Lease: 3 * time.Second, RenewEvery: 50 * time.Millisecond}
	for _, owned := range []bool{true, false} {
		ignore := goleak.IgnoreCurrent()
		var c *client.Client
		redis := rueidis.Client(nil)
		var err error
		if owned {
			c, err = client.Open(e.D.ClientOption(), cfg)
		} else {
			redis, err = rueidis.NewClient(e.D.ClientOption())
			require.NoError(t, err)
			c, err = client.New(redis, cfg)
		}
		require.NoError(t, err)
		l := e.Take(c, "a")
		e.renewals("a", 2)
		blocker := e.open(client.Config{Lease: testbed.Long})
		b := e.Take(blocker, "b")
		first := e.Acquire(e.Ctx, c, "b")
		e.Line(blocker, "b", 1)
		second := e.Acquire(e.Ctx, c, "b") // behind the first, inside the process
		polling := e.Acquire(e.Ctx, c, "b", client.WithPolling(1000, time.Minute))

		started := time.Now()
		c.Close()
		require.Less(t, time.Since(started), 5*time.Second)
		for _, w := range []<-chan testbed.Outcome{first, second, polling} {
			require.ErrorIs(t, testbed.Got(e.TB, w).Err, client.ErrClosed)
		}
		cause := e.Ended(l.Context())
		require.ErrorIs(t, cause, client.ErrClosed)
		require.True(t, e.Exists("a"), "it is not released: work may be going on under it")
		c.Close()
		_, err = c.TryAcquire(e.Ctx, "c")
		require.ErrorIs(t, err, client.ErrClosed)
		_, err = c.Acquire(e.Ctx, "c")
		require.ErrorIs(t, err, client.ErrClosed)
		require.Error(t, l.Release(e.Ctx))
		e.Line(blocker, "b", 0)
		e.Release(b)
		blocker.Close()
		if redis != nil {
			require.NoError(t, redis.Do(e.Ctx, redis.B().Ping().Build()).Error(), "it stays the caller's")
			redis.Close()
		}
		e.Eventually("the lease ends", func() bool { return !e.Exists("a") })
		require.NoError(t, goleak.Find(ignore))
	}
}

func TestNewOverTheCallersOwnClient(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, err := client.New(e.Redis, client.Config{Prefix: e.Prefix, Lease: testbed.Long, RenewEvery: 50 * time.Millisecond})
		require.NoError(t, err)
		defer c.Close()
		other := e.open(client.Config{Lease: testbed.Long})
		l := e.Take(c, "a")
		e.renewals("a", 3)
		waiting := e.Acquire(e.Ctx, other, "a")
		e.Line(c, "a", 1)
		e.Release(l)
		l = e.Locked(waiting).Lock
		waiting = e.Acquire(e.Ctx, c, "a")
		e.Line(c, "a", 1)
		e.Release(l)
		e.Release(e.Locked(waiting).Lock)
		_, err = client.New(nil, client.Config{})
		require.True(t, errors.Is(err, client.ErrArgument))
	})
}
