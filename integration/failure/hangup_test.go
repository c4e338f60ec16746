package failure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
)

// An operator kills all connections again and again: no lock is lost, and nobody in line is stuck.
func TestConnectionsAreKilledInALoop(t *testing.T) {
	t.Parallel()
	server.Each(t, func(t *testing.T, f server.Flavour) {
		b := lay(t, server.Single(t, server.Owned(), server.WithFlavour(f)))
		w := b.crew(b.D.ClientOption(), client.Config{Lease: 3 * time.Second, RenewEvery: 300 * time.Millisecond})
		kills := 0
		for began := time.Now(); time.Since(began) < 5*time.Second; kills++ {
			for _, kind := range []string{"normal", "pubsub"} {
				_, err := b.D.Nodes()[0].Do(b.Ctx, "CLIENT", "KILL", "TYPE", kind)
				require.NoError(t, err)
			}
			if kills == 20 { // a line goes on meanwhile
				assert.NoError(t, w.lines.release(w.lines.names[0]))
				w.lines.names = w.lines.names[1:]
			}
			<-time.After(50 * time.Millisecond) // the pace of it
		}
		w.load.end()
		t.Logf("killed %d times; %d locks taken and given back, %d calls failed", kills, w.load.turns.Load(), len(w.load.failed))
		for _, err := range w.load.failed {
			assert.ErrorIs(t, err, client.ErrUnreachable)
		}
		w.check(t)
	})
}
