package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A pass can take less than the microsecond that a token needs. Then it waits for the rest: to give
// the lock back instead would cost a round trip.
func TestAPassWaitsForItsToken(t *testing.T) {
	h := &held{since: time.Now(), first: 100}
	now := h.pace(102, h.since)
	require.False(t, now.Before(h.since.Add(2*time.Microsecond)))
	later := h.since.Add(time.Second)
	require.Equal(t, later, h.pace(102, later), "it is not early")
}
