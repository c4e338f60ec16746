package fcall

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Silence lasts from the first call without an answer to the next answer, also when nobody waits
// for one any more.
func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPulse()
		require.Zero(t, p.Silent(), "nothing was asked")
		time.Sleep(time.Hour)
		p.asked()
		require.Zero(t, p.Silent())
		time.Sleep(time.Second)
		p.asked()
		require.Equal(t, time.Second, p.Silent())
		p.done(true)
		require.Zero(t, p.Silent(), "the other one began before that answer, and may be slow")
		time.Sleep(time.Second)
		p.done(false)
		require.Equal(t, time.Second, p.Silent(), "it was given up: nothing was heard for it")
		time.Sleep(time.Second)
		p.asked()
		time.Sleep(time.Second)
		require.Equal(t, 3*time.Second, p.Silent())
		p.done(true)
		require.Zero(t, p.Silent())
		time.Sleep(time.Hour)
		require.Zero(t, p.Silent(), "nothing is owed")
	})
}
