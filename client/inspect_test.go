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
