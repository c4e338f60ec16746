package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

func TestAPlainStringIsALockToo(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: testbed.Long})
		require.NoError(t, e.Do("a", "SET", "old service 7", "NX", "PX", "700").Error())
		_, err := c.TryAcquire(e.Ctx, "a")
		require.ErrorIs(t, err, client.ErrBusy)
		busy := as[*client.BusyError](e, err)
		require.Equal(t, "old service 7", busy.Holder.Owner)
		require.Positive(t, busy.Remaining)
		info := e.inspect(c, "a")
		require.True(t, info.Held)
		require.Zero(t, info.Fence)
		o := testbed.Got(e.TB, e.Acquire(e.Ctx, c, "a"))
		require.NoError(t, o.Err, "after its TTL")
		e.Release(o.Lock)

		require.NoError(t, e.Do("b", "SET", "forever").Error())
		_, err = c.Acquire(e.Ctx, "b", client.WithMaxWait(2*time.Second))
		only(t, client.ErrTimeout, err)
		require.Negative(t, as[*client.WaitError](e, err).Last.Remaining, "it has none")
		waiting := e.Acquire(e.Ctx, c, "b")
		broken, err := e.open(client.Config{}).Break(e.Ctx, "b", "moved")
		require.NoError(t, err)
		require.Equal(t, "forever", broken.Holder.Owner)
		e.Release(e.Locked(waiting).Lock)
	})
}

func TestAWrongTypeIsNotALock(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{})
		require.NoError(t, e.Do("list", "RPUSH", "x").Error())
		require.NoError(t, e.Do("hash", "HSET", "field", "x").Error())
		for _, name := range []string{"list", "hash"} {
			_, err := c.TryAcquire(e.Ctx, name)
			require.ErrorIs(t, err, client.ErrNotALock, name)
			only(t, client.ErrInvalid, err)
			_, err = c.Acquire(e.Ctx, name)
			require.ErrorIs(t, err, client.ErrNotALock)
			_, err = c.Inspect(e.Ctx, name)
			require.ErrorIs(t, err, client.ErrNotALock)
			require.True(t, e.Exists(name), "it is left alone")
			require.NoError(t, e.Do(name, "DEL").Error())
		}
	})
}

func TestAnOwnerOfAnotherLanguageIsShownAsItIs(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{})
		require.NoError(t, e.fcall(functions.Acquire, "a", "python worker 7", "60000").Error())
		_, err := c.TryAcquire(e.Ctx, "a")
		busy := as[*client.BusyError](e, err)
		require.Equal(t, client.Holder{Owner: "python worker 7"}, busy.Holder)
		require.Contains(t, err.Error(), `"python worker 7"`)
		require.NoError(t, e.fcall(functions.Release, "a", "python worker 7").Error())
	})
}
