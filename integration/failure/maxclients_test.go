package failure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
)

// A server has as many clients as it takes. A new one is ErrUnreachable; that the error says why is
// not seen, because rueidis drops the server's words when the connection ends behind them. Those that
// are connected go on: they take locks, hold them and wait.
func TestMaxClients(t *testing.T) {
	t.Parallel()
	server.Each(t, func(t *testing.T, f server.Flavour) {
		b := lay(t, server.Single(t, server.Owned(), server.WithFlavour(f)))
		w := b.crew(b.D.ClientOption(), client.Config{Lease: 2 * time.Second, RenewEvery: 200 * time.Millisecond})
		b.do("CONFIG", "SET", "maxclients", "1")
		texts := map[string]int{}
		for range 20 {
			_, err := client.Open(b.D.ClientOption(), client.Config{})
			require.ErrorIs(t, err, client.ErrUnreachable)
			texts[err.Error()]++
		}
		t.Logf("what new clients are told: %v", texts)
		began := time.Now()
		b.Eventually("longer than a lease", func() bool { return time.Since(began) > 3*time.Second })
		w.load.check(t)
		assert.Zero(t, w.check(t).lost)
		b.Eventually("it takes more again", func() bool { // this client has not made all of its connections either
			return b.Redis.Do(b.Ctx, b.Redis.B().Arbitrary("CONFIG", "SET", "maxclients", "1000").Build()).Error() == nil
		})
		b.Release(b.Take(b.open(time.Second), "a"))
	})
}
