package several

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

// Two servers are silent, and of the other three one has a vote out for a moment. Whose turn it is asks
// again soon: it does not wait for the silent ones.
func TestWhoseTurnItIsDoesNotWaitForTheSilent(t *testing.T) {
	on(t, 5, func(b *bed) {
		c, other := b.client(client.Config{}), b.client(client.Config{})
		defer c.Close()
		defer other.Close()
		l, err := c.Acquire(b.Context(), "x")
		require.NoError(b, err)
		waited := make(chan *client.Lock)
		go func() {
			m, err := other.Acquire(b.Context(), "x")
			assert.NoError(b, err)
			waited <- m
		}()
		time.Sleep(time.Second)
		line := b.line("x")
		rival, silent := b.nodes[(line+1)%5], b.nodes[(line+2)%5]
		silent.Pause()
		b.nodes[(line+3)%5].Pause()
		rival.Do("FCALL", "holdfast_break", "1", "lock:x")
		rival.Do("FCALL", "holdfast_acquire", "1", "lock:x", "rival", "300")
		began := time.Now()
		go func() { _ = l.Release(b.Context()) }()
		m := <-waited
		require.NotNil(b, m)
		assert.Less(b, time.Since(began), time.Second)
		b.nodes[(line+3)%5].Continue()
		silent.Continue()
		require.NoError(b, m.Release(b.Context()))
	})
}
