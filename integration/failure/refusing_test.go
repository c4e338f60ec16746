package failure

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
)

// A server takes no writes: because it could not save its data, or has too few replicas. New locks
// are refused in its words. A lock that is held survives that if it ends within the lease, and so does
// a place in line.
func TestAServerThatTakesNoWrites(t *testing.T) {
	for _, c := range []struct {
		word      string
		on, off   func(b *bed)
		configure [][2]string
	}{
		{"MISCONF", func(b *bed) {
			b.do("CONFIG", "SET", "dir", "/proc") // nobody can write there
			b.do("CONFIG", "SET", "save", "3600 1")
			b.do("BGSAVE")
			b.Eventually("it could not save", func() bool {
				return b.D.Nodes()[0].Info(b.Ctx, "persistence", "rdb_last_bgsave_status") == "err"
			})
		}, func(b *bed) { b.do("CONFIG", "SET", "save", "") }, [][2]string{{"enable-protected-configs", "yes"}}},
		{"NOREPLICAS", func(b *bed) { b.do("CONFIG", "SET", "min-replicas-to-write", "1") },
			func(b *bed) { b.do("CONFIG", "SET", "min-replicas-to-write", "0") }, nil},
	} {
		t.Run(c.word, func(t *testing.T) {
			t.Parallel()
			opts := []server.Option{server.Owned()}
			for _, kv := range c.configure {
				opts = append(opts, server.WithConfig(kv[0], kv[1]))
			}
			b := lay(t, server.Single(t, opts...))
			cl := b.Connect(b.D.ClientOption(), client.Config{Lease: 10 * time.Second, RenewEvery: 100 * time.Millisecond})
			l, waited := b.Take(cl, "held"), b.Take(cl, "waited for")
			other := b.open(10 * time.Second)
			waiting := b.Acquire(b.Ctx, other, "waited for")
			b.Line(cl, "waited for", 1)

			c.on(b)
			for range 3 {
				_, err := cl.TryAcquire(b.Ctx, "free")
				require.ErrorIs(t, err, client.ErrUnreachable)
				require.ErrorContains(t, err, c.word)
				require.ErrorIs(t, l.Renew(b.Ctx), client.ErrUnreachable)
			}
			// Long enough for the one in line to be refused too: it asks again after a second or so.
			began := time.Now()
			b.Eventually("a while", func() bool { return time.Since(began) > 2*time.Second })
			require.Empty(t, waiting)
			c.off(b)
			b.renewed("held", 3)
			require.NoError(t, l.Context().Err())
			b.Release(waited)
			b.Release(b.Locked(waiting).Lock)
			b.Release(b.Take(cl, "free"))
			b.Release(l)
		})
	}
}

// A server restarts with its data, and loads them for a while. It refuses everything until then. A
// lock whose lease is longer than that is still held, and a line is still there.
func TestAServerThatIsLoading(t *testing.T) {
	t.Parallel()
	server.Each(t, func(t *testing.T, f server.Flavour) {
		b := lay(t, server.Single(t, server.Owned(), server.WithFlavour(f), server.WithConfig("save", "3600 1"),
			server.WithConfig("key-load-delay", "5000"), server.WithConfig("loading-process-events-interval-bytes", "1024")))
		for i := range 300 {
			b.do("SET", fmt.Sprint("ballast ", i), fmt.Sprintf("%0200d", i))
		}
		const lease = 20 * time.Second
		c := b.Connect(b.D.ClientOption(), client.Config{Lease: lease, RenewEvery: 100 * time.Millisecond})
		l, waited := b.Take(c, "held"), b.Take(c, "waited for")
		waiting := b.Acquire(b.Ctx, b.open(lease), "waited for")
		b.Line(c, "waited for", 1)
		require.NoError(t, b.D.Nodes()[0].Stop())
		restarted := make(chan error, 1)
		go func() { restarted <- b.D.Nodes()[0].Restart() }()
		b.Eventually("it is loading", func() bool {
			_, err := c.TryAcquire(b.Ctx, "free")
			assert.ErrorIs(t, err, client.ErrUnreachable)
			return err == nil || strings.Contains(err.Error(), "LOADING")
		})
		require.NoError(t, <-restarted)
		b.Eventually("it is renewed", func() bool { return l.Renew(b.Ctx) == nil })
		require.NoError(t, l.Context().Err())
		b.Line(c, "waited for", 1)
		b.Eventually("the connections of this test are back", func() bool {
			return b.Do("waited for", "EXISTS").Error() == nil
		})
		b.subscribed(t, b.D.Nodes()[0], "waited for")
		b.Release(waited)
		b.Release(b.Locked(waiting).Lock)
		b.Release(l)
	})
}
