// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
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
	view.Add(gone)
	call("break", "lock:broken", "REASON", "it hangs")
	for range 2 {
		require.NotEmpty(t, series.Look(ctx, Filter{}).Errors)
		require.Equal(t, 1, series.Lost[CauseBroken].Count)
	}
}

// A name moved from a server that is a replica now: what it has is not believed, and the next look is at the
// other one.
func TestADemotedServerIsLeft(t *testing.T) {
	d := server.Replicated(t, 1, server.Owned())
	d.Load(t)
	var at atomic.Pointer[server.Node]
	at.Store(d.Nodes()[0])
	option := d.ClientOption()
	option.DialCtxFn = func(ctx context.Context, _ string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", at.Load().Addr)
	}
	redis, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	view, err := Open(redis, "lock:")
	require.NoError(t, err)
	t.Cleanup(view.Close)
	do := func(n *server.Node, words ...string) {
		_, err := n.Do(t.Context(), words...)
		require.NoError(t, err, words)
	}
	do(d.Nodes()[0], "FCALL", "holdfast_acquire", "1", "lock:a", "owner", "600000")
	do(d.Nodes()[0], "WAIT", "1", "0")
	series := Series{View: view, Within: time.Minute}
	require.Empty(t, series.Look(t.Context(), Filter{}).Errors)
	at.Store(d.Nodes()[1])
	host, port, err := net.SplitHostPort(d.Nodes()[1].Addr)
	require.NoError(t, err)
	do(d.Nodes()[1], "REPLICAOF", "NO", "ONE")
	do(d.Nodes()[0], "REPLICAOF", host, port)
	require.Contains(t, fmt.Sprint(series.Look(t.Context(), Filter{}).Errors), "this is a replica now")
	require.Eventually(t, func() bool {
		look := series.Look(t.Context(), Filter{})
		return len(look.Errors) == 0 && len(look.Locks) == 1
	}, time.Minute, 10*time.Millisecond)
	require.Zero(t, series.Lost[CauseExpired].Count)
}
