// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

// A reason that is too long is cut between two characters: logs and traces take text alone.
func TestAReasonIsText(t *testing.T) {
	c := opened(t)
	for _, begin := range []string{"", "x"} {
		lock, err := c.Acquire(background, t.Name())
		require.NoError(t, err)
		_, err = c.Break(background, t.Name(), begin+strings.Repeat("é", 500))
		require.NoError(t, err)
		<-lock.Context().Done()
		var lost *client.LostError
		require.ErrorAs(t, context.Cause(lock.Context()), &lost)
		require.Greater(t, len(lost.Reason), 500)
		require.True(t, utf8.ValidString(lost.Reason), "%q", lost.Reason)
	}
}

// The record of a break stays until the end of the broken lease, or for ten seconds: not for as long as
// another holder's lease was.
func TestTheRecordOfABreakHasTheTimeOfItsLease(t *testing.T) {
	c, name := opened(t), t.Name()
	long, err := c.Acquire(t.Context(), name, client.WithLimit(2), client.WithLease(10*time.Minute))
	require.NoError(t, err)
	short, err := c.Acquire(t.Context(), name, client.WithLimit(2), client.WithLease(time.Second))
	require.NoError(t, err)
	_, err = c.BreakOwner(t.Context(), name, short.Owner(), "hung")
	require.NoError(t, err)
	require.NoError(t, long.Release(t.Context()))
	left, err := c.Redis().Do(t.Context(), c.Redis().B().Pttl().Key("lock:"+name).Build()).ToInt64()
	require.NoError(t, err)
	require.LessOrEqual(t, left, int64(10_000))
}

// A break of what MinHold alone keeps broke nobody's lock: it leaves no record, and no key, also if nobody
// has looked since the lease of its holder ended.
func TestABreakOfAKeptSlotLeavesNoKey(t *testing.T) {
	c, name := opened(t), t.Name()
	dead := c.Redis().B().Fcall().Function("holdfast_acquire").Numkeys(1).Key("lock:"+name).
		Arg("dead", "50", "LIMIT", "2", "MINHOLD", "60000").Build() // its process gives nothing back
	require.NoError(t, c.Redis().Do(t.Context(), dead).Error())
	require.Eventually(t, func() bool {
		all, err := c.Holders(t.Context(), name) // reads only
		return err == nil && len(all) == 1 && all[0].Holder.Owner == ""
	}, 10*time.Second, 10*time.Millisecond)
	info, err := c.Break(t.Context(), name, "hung")
	require.NoError(t, err)
	require.True(t, info.Held)
	left, err := c.Redis().Do(t.Context(), c.Redis().B().Pttl().Key("lock:"+name).Build()).ToInt64()
	require.NoError(t, err)
	require.EqualValues(t, -2, left)
}
