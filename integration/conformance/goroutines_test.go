package conformance

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

func TestHeldLocksCostNoGoroutines(t *testing.T) {
	e := own(t)
	c := e.open(client.Config{Lease: testbed.Long, RenewEvery: 300 * time.Millisecond})
	const n = 200
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

func TestNewOverTheCallersOwnClient(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, err := client.New(e.Redis, client.Config{Lease: testbed.Long, RenewEvery: 50 * time.Millisecond})
		require.NoError(t, err)
		defer c.Close()
		require.True(t, c.Redis() == e.Redis)
		name := e.Prefix + "a"
		e.Prefix = "lock:" // the default
		other := e.open(client.Config{Lease: testbed.Long})
		require.NoError(t, other.Redis().Do(e.Ctx, other.Redis().B().Ping().Build()).Error())
		l := e.Take(c, name)
		e.renewals(name, 3)
		for _, next := range []*client.Client{other, c} {
			waiting := e.Acquire(e.Ctx, next, name)
			e.Line(c, name, 1)
			e.Release(l)
			l = e.Locked(waiting).Lock
		}
		e.Release(l)
		_, err = client.New(nil, client.Config{})
		require.ErrorIs(t, err, client.ErrArgument)
	})
}
