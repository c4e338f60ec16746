// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// A refusal and Inspect say the same of who has the lock.
func TestInspect(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: testbed.Long, Label: "nightly"})
		version, err := c.Version(e.Ctx)
		require.NoError(t, err)
		require.Equal(t, functions.Version, version)
		info := e.inspect(c, "a")
		require.Equal(t, client.Info{Name: "a", Why: functions.WhyFree}, info)
		require.False(t, e.Exists("a"))
		l := e.Take(c, "a")
		waiting := e.Acquire(e.Ctx, e.open(client.Config{}), "a")
		e.Line(c, "a", 1)
		info = e.inspect(c, "a")
		require.True(t, info.Held)
		_, err = c.TryAcquire(e.Ctx, "a", client.WithFreshAnswer())
		only(t, client.ErrBusy, err)
		holder := as[*client.BusyError](e, err).Holder
		require.Contains(t, err.Error(), `"a": held by another: `+holder.String())
		require.Equal(t, os.Getpid(), holder.PID)
		require.NotEmpty(t, holder.Host)
		holder.Since = info.Holder.Since // a refusal has whole milliseconds
		require.Equal(t, holder, info.Holder)
		require.Equal(t, "nightly", holder.Label)
		require.WithinDuration(t, time.Now(), info.Holder.Since, time.Minute)
		require.Contains(t, info.Holder.String(), "nightly")
		require.Equal(t, 1, info.Holds)
		require.Equal(t, l.Fence(), info.Fence)
		require.InDelta(t, testbed.Long, info.Remaining, float64(testbed.Within))
		require.Equal(t, 1, info.Waiters)
		e.Release(l)
		e.Release(e.Locked(waiting).Lock)
		_, err = c.Inspect(e.Ctx, "")
		require.ErrorIs(t, err, client.ErrArgument)
		_, err = c.Break(e.Ctx, "", "")
		require.ErrorIs(t, err, client.ErrArgument)
	})
}
