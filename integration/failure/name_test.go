package failure

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
)

// A name in the DNS moves to the replica, which becomes the primary: as where a service runs the
// servers. The old primary is dead, or is a replica that hangs up on its clients. Clients follow the
// name. What was replicated is still held.
func TestANameMoves(t *testing.T) {
	for name, lose := range map[string]func(b *bed, old, primary *server.Node){
		"dead": func(b *bed, old, _ *server.Node) { require.NoError(b.TB, old.Kill()) },
		"demoted": func(b *bed, old, primary *server.Node) {
			host, port, err := net.SplitHostPort(primary.Addr)
			require.NoError(b.TB, err)
			for _, command := range [][]string{{"REPLICAOF", host, port}, {"CLIENT", "KILL", "TYPE", "normal"}, {"CLIENT", "KILL", "TYPE", "pubsub"}} {
				_, err := old.Do(b.Ctx, command...)
				require.NoError(b.TB, err)
			}
		},
		"demoted, and hangs up on nobody": func(b *bed, old, primary *server.Node) {
			host, port, err := net.SplitHostPort(primary.Addr)
			require.NoError(b.TB, err)
			_, err = old.Do(b.Ctx, "REPLICAOF", host, port)
			require.NoError(b.TB, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := lay(t, server.Replicated(t, 1, server.Owned()))
			old, primary := b.D.Nodes()[0], b.D.Nodes()[1]
			var addr atomic.Value
			addr.Store(old.Addr)
			option := b.D.ClientOption()
			option.InitAddress = []string{"redis.example:6379"}
			option.DialCtxFn = func(ctx context.Context, name string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
				assert.Equal(t, "redis.example:6379", name)
				return d.DialContext(ctx, "tcp", addr.Load().(string))
			}
			w := b.crew(option, client.Config{Lease: 5 * time.Second, RenewEvery: 200 * time.Millisecond})
			// no new locks while it moves, or some can be lost
			w.load.end()
			b.replicated(old)
			_, err := primary.Do(b.Ctx, "REPLICAOF", "NO", "ONE")
			require.NoError(t, err)
			addr.Store(primary.Addr)
			moved := time.Now()
			lose(b, old, primary)
			for _, l := range w.held {
				b.Eventually("it is renewed at the new primary", func() bool { return l.Renew(b.Ctx) == nil })
			}
			t.Logf("all locks were renewed %v after the move", time.Since(moved))
			w.check(t)
		})
	}
}
