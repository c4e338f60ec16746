package failure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

func (b *bed) do(command ...string) {
	b.TB.Helper()
	require.NoError(b.TB, b.Redis.Do(b.Ctx, b.Redis.B().Arbitrary(command...).Build()).Error())
}

// With the memory full nothing new is locked, but what is held is renewed and given back.
func TestFullMemory(t *testing.T) {
	b := single(t)
	c := b.open(900 * time.Millisecond)
	l := b.Take(c, "a")
	b.do("CONFIG", "SET", "maxmemory", "1")
	for _, acquire := range []func() (*client.Lock, error){
		func() (*client.Lock, error) { return c.TryAcquire(b.Ctx, "b") },
		func() (*client.Lock, error) { return c.Acquire(b.Ctx, "b") },
	} {
		_, err := acquire()
		require.ErrorIs(t, err, client.ErrUnreachable)
		require.NotErrorIs(t, err, client.ErrBusy)
		require.Contains(t, err.Error(), "OOM")
	}
	b.renewed("a", 6)
	require.NoError(t, l.Renew(b.Ctx))
	require.NoError(t, l.Context().Err())
	b.Release(l)
	require.False(t, b.Exists("a"))
	b.do("CONFIG", "SET", "maxmemory", "0")
	b.Release(b.Take(c, "b"))
}

// A line is handed on with the memory full too: the waiters are there already.
func TestFullMemoryWithALine(t *testing.T) {
	b := single(t)
	holder, c := b.open(testbed.Long), b.open(testbed.Long)
	l := b.Take(holder, "a")
	waiting := b.Acquire(b.Ctx, c, "a")
	b.Line(holder, "a", 1)
	b.do("CONFIG", "SET", "maxmemory", "1")
	b.Release(l)
	o := b.Locked(waiting)
	require.NoError(t, o.Lock.Renew(b.Ctx))
	b.Release(o.Lock)
	require.False(t, b.Exists("a"))
}

// The library is deleted while locks are held: new calls say so, and held locks go on if it comes
// back within the lease.
func TestTheLibraryIsDeleted(t *testing.T) {
	b := single(t)
	c := b.open(20 * time.Second)
	l := b.Take(c, "a", client.WithRenewal(50*time.Millisecond))
	b.renewed("a", 1)
	b.do("FUNCTION", "DELETE", "holdfast")
	_, err := c.TryAcquire(b.Ctx, "b")
	require.ErrorIs(t, err, client.ErrLibrary)
	require.Contains(t, err.Error(), "holdfast load")
	_, err = c.Acquire(b.Ctx, "b")
	require.ErrorIs(t, err, client.ErrLibrary)
	require.ErrorIs(t, l.Renew(b.Ctx), client.ErrLibrary)
	require.NoError(t, l.Context().Err(), "the lease stands")
	b.D.Load(t)
	b.renewed("a", 2)
	require.NoError(t, l.Context().Err())
	next := b.Take(c, "b")
	require.Greater(t, next.Fence(), l.Fence())
	b.Release(next)
	b.Release(l)
}
