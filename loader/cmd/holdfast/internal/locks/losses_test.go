// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A lease that runs out is a loss, with a next holder and without; what is given back is none.
func TestLossesAreSeen(t *testing.T) {
	ctx, view, call := loaded(t)
	series := Series{View: view, Within: time.Minute}
	for _, key := range []string{"lock:dies", "lock:queued", "lock:broken"} {
		call("acquire", key, "holder", "5000")
	}
	call("acquire", "lock:several", "holder", "5000", "SHARED") // of these nobody can tell
	call("acquire", "lock:released", "holder", "600000")
	call("acquire", "lock:kept", "holder", "5000", "MINHOLD", "600000")
	call("wait", "lock:queued", "waiter", "600000")
	require.Empty(t, series.Look(ctx, Filter{}).Losses)
	call("renew", "lock:released", "holder", "200000")
	require.Eventually(t, func() bool { // less than half of the leases is left
		lock, err := view.Lock(ctx, "dies")
		return err == nil && (!lock.Held || lock.RemainingMS < 2400)
	}, time.Minute, 10*time.Millisecond)
	require.Empty(t, series.Look(ctx, Filter{}).Losses)
	call("release", "lock:released", "holder")
	call("break", "lock:broken", "REASON", "it hangs")
	require.Eventually(t, func() bool {
		lock, err := view.Lock(ctx, "queued") // it was taken after the other one
		return err == nil && !lock.Held
	}, time.Minute, 10*time.Millisecond)
	call("wait", "lock:queued", "waiter", "600000") // it asks, and has it
	look := series.Look(ctx, Filter{})
	var lost []string
	for _, l := range look.Losses {
		require.Equal(t, "holder", l.Owner)
		require.Positive(t, l.Token)
		lost = append(lost, l.Name+" "+string(l.Cause)+" "+l.Reason)
	}
	require.ElementsMatch(t, []string{"dies expired ", "queued expired ", "broken broken it hangs"}, lost)
	require.Equal(t, []int{2, 1}, []int{series.Lost[CauseExpired].Count, series.Lost[CauseBroken].Count})
	require.Len(t, series.Look(ctx, Filter{}).Losses, 3, "none twice")
	require.Equal(t, 2, series.Lost[CauseExpired].Count)
}

// A look that does not see all notes no loss again.
func TestALossIsCountedOnce(t *testing.T) {
	ctx, view, call := loaded(t)
	series := Series{View: view, Within: time.Minute}
	call("acquire", "lock:broken", "holder", "600000")
	require.Empty(t, series.Look(ctx, Filter{}).Errors)
	gone := connected(t)
	gone.Close()
	view.redis = append(view.redis, gone)
	call("break", "lock:broken", "REASON", "it hangs")
	for range 2 {
		require.NotEmpty(t, series.Look(ctx, Filter{}).Errors)
		require.Equal(t, 1, series.Lost[CauseBroken].Count)
	}
}
