package several

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

// A server whose clock is far behind refuses the token of the others. While another one is away, that
// is no majority, and not an error of the caller, who may ask again: who waits goes on waiting.
func TestAClockIsFarBehindAndAServerIsAway(t *testing.T) {
	on(t, 3, func(b *bed) {
		b.nodes[(b.line("x")+1)%3].SetClock(-time.Hour, 0)
		c := b.client(client.Config{})
		defer c.Close()
		l := b.hold(c, "x")
		time.Sleep(2 * lease) // its memory begins before its clock, and so anew
		require.NoError(b, l.Release(b.Context()))
		away := b.nodes[(b.line("x")+2)%3]
		away.Pause()
		_, err := c.TryAcquire(b.Context(), "x")
		assert.ErrorIs(b, err, client.ErrUnreachable)
		assert.NotErrorIs(b, err, client.ErrArgument)
		_, err = c.Acquire(b.Context(), "x", client.WithMaxWait(3*time.Second))
		assert.ErrorIs(b, err, client.ErrUnreachable)
		assert.NotErrorIs(b, err, client.ErrArgument)
		away.Continue()
	})
}
