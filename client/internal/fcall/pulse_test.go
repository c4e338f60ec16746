package fcall

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

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
		require.Equal(t, time.Second, p.Silent(), "who waits behind it may end at the same deadline")
		time.Sleep(time.Second)
		require.Zero(t, p.Silent(), "nobody asks")
		p.asked()
		time.Sleep(time.Second)
		require.Equal(t, time.Second, p.Silent())
		p.done(true)
		require.Zero(t, p.Silent())
		time.Sleep(time.Hour)
		require.Zero(t, p.Silent())
	})
}
