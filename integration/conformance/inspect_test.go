package conformance

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

func TestInspect(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: testbed.Long, Label: "nightly"})
		info := e.inspect(c, "a")
		require.Equal(t, client.Info{Name: "a", Why: functions.WhyFree}, info)
		require.False(t, e.Exists("a"))
		l := e.Take(c, "a")
		waiting := e.Acquire(e.Ctx, e.open(client.Config{}), "a")
		e.Line(c, "a", 1)
		info = e.inspect(c, "a")
		require.True(t, info.Held)
		require.Equal(t, l.Owner(), info.Holder.Owner)
		require.Equal(t, os.Getpid(), info.Holder.PID)
		require.Equal(t, "nightly", info.Holder.Label)
		require.NotEmpty(t, info.Holder.Host)
		require.WithinDuration(t, time.Now(), info.Holder.Since, time.Minute)
		require.Contains(t, info.Holder.String(), "nightly")
		require.Equal(t, 1, info.Holds)
		require.Equal(t, l.Fence(), info.Fence)
		require.InDelta(t, testbed.Long, info.Remaining, float64(testbed.Within))
		require.Equal(t, 1, info.Waiters)
		e.Release(l)
		e.Release(e.Locked(waiting).Lock)
		_, err := c.Inspect(e.Ctx, "")
		require.ErrorIs(t, err, client.ErrArgument)
		_, err = c.Break(e.Ctx, "", "")
		require.ErrorIs(t, err, client.ErrArgument)
	})
}

func TestVersion(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		version, err := e.open(client.Config{}).Version(e.Ctx)
		require.NoError(t, err)
		require.Equal(t, functions.Version, version)
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

func TestPrefixes(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		plain := e.Prefix
		tagged := "{" + e.Prefix + "}:"
		for _, prefix := range []string{plain, tagged, plain + "{x}:"} {
			e.Prefix = prefix
			a, b := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
			for _, name := range []string{"a", "b", "c:{tag}", "with space", "ü\x00\n", "{}odd"} {
				l := e.Take(a, name)
				require.True(t, e.Exists(name), "%q", prefix+name)
				waiting := e.Acquire(e.Ctx, b, name)
				e.Line(a, name, 1)
				e.Release(l)
				e.Release(e.Locked(waiting).Lock)
			}
		}
		require.Equal(t, cluster.Slot(tagged+"a"), cluster.Slot(tagged+"b"), "one slot")
	})
}

func TestEmptyName(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{})
		_, err := c.TryAcquire(e.Ctx, "")
		require.ErrorIs(t, err, client.ErrArgument)
		require.Contains(t, err.Error(), "name")
		_, err = c.Acquire(e.Ctx, "")
		require.ErrorIs(t, err, client.ErrArgument)
	})
}
