// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

func TestAPlainStringIsALockToo(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: testbed.Long})
		require.NoError(t, e.Do("a", "SET", "old service 7", "NX", "PX", "60000").Error())
		_, err := c.TryAcquire(e.Ctx, "a")
		require.ErrorIs(t, err, client.ErrBusy)
		busy := as[*client.BusyError](e, err)
		require.Equal(t, "old service 7", busy.Holder.Owner)
		require.Positive(t, busy.Remaining)
		info := e.inspect(c, "a")
		require.True(t, info.Held)
		require.Zero(t, info.Fence)
		require.NoError(t, e.Do("a", "PEXPIRE", "700").Error())
		e.Release(e.Locked(e.Acquire(e.Ctx, c, "a")).Lock) // after its TTL

		require.NoError(t, e.Do("b", "SET", "forever").Error())
		// It asks all the time, so a busy machine can have left a question unanswered for a moment: the kind of the
		// error is for others to show.
		_, err = c.Acquire(e.Ctx, "b", client.WithMaxWait(5*time.Second))
		require.Negative(t, as[*client.WaitError](e, err).Last.Remaining, "it has none")
		waiting := e.Acquire(e.Ctx, c, "b")
		broken, err := e.open(client.Config{}).Break(e.Ctx, "b", "moved")
		require.NoError(t, err)
		require.Equal(t, "forever", broken.Holder.Owner)
		e.Release(e.Locked(waiting).Lock)
	})
}
