package failure

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// The next waiter has a killed holder's lock within 50 ms of the lease's end, also where Redis
// itself is late with expired keys because there are many. The median of a few is judged, all are
// printed: the machine may be busy elsewhere.
func TestAKilledHoldersLockGoesToTheNextWaiter(t *testing.T) {
	b := serial(t)
	for _, keys := range []int{0, 300_000} {
		if keys > 0 {
			const fill = `for i = 1, tonumber(ARGV[1]) do redis.call('SET', 'other:' .. i, 'x', 'EX', 3600 + i % 1000) end return 1`
			require.NoError(t, b.Redis.Do(b.Ctx, b.Redis.B().Eval().Script(fill).Numkeys(0).Arg("300000").Build()).Error())
		}
		var delays []time.Duration
		for range 5 {
			h := b.spawn("a", time.Second)
			c := b.open(testbed.Long)
			waiting := b.Acquire(b.Ctx, c, "a")
			b.Line(c, "a", 1)
			h.Kill()
			ends := b.ends("a")
			o := b.Locked(waiting)
			delays = append(delays, o.At.Sub(ends))
			b.Release(o.Lock)
		}
		t.Logf("with %d other keys, after the lease's end: %v", keys, delays)
		slices.Sort(delays)
		require.Greater(t, delays[0], -20*time.Millisecond, "never before it")
		require.Less(t, delays[len(delays)/2], 50*time.Millisecond)
	}
}

// A process that is paused for longer than its lease learns of the loss by its first look, and what
// it writes without looking is refused by its token.
func TestAPausedHolder(t *testing.T) {
	b := single(t)
	h := b.spawn("a", 1500*time.Millisecond)
	h.Say("write stock")
	h.Hear("written true <nil>")
	c := b.open(testbed.Long)
	waiting := b.Acquire(b.Ctx, c, "a")
	b.Line(c, "a", 1)
	h.Signal(syscall.SIGSTOP)
	next := b.Locked(waiting).Lock
	done, err := writeFenced(b.Ctx, b.Redis, "stock", next.Fence(), "of the next holder")
	require.NoError(t, err)
	require.True(t, done)
	h.Signal(syscall.SIGCONT)
	h.Say("look")
	h.Hear("remaining 0s")
	h.Say("write stock")
	h.Hear("written false <nil>")
	h.Say("cause")
	require.Contains(t, h.Hear(""), client.ErrLost.Error())
	require.NoError(t, next.Context().Err())
	b.Release(next)
}
