package failure

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// A server restarts with its data, and loads them for a while. It refuses everything until then. A
// lock whose lease is longer than that is still held, and a line is still there.
func TestAServerThatIsLoading(t *testing.T) {
	onEach(t, func(t *testing.T, b *bed) {
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
		b.subscribed(b.D.Nodes()[0], 0, 1)
		b.Release(waited)
		b.Release(b.Locked(waiting).Lock)
		b.Release(l)
	}, server.WithConfig("save", "3600 1"), server.WithConfig("key-load-delay", "5000"),
		server.WithConfig("loading-process-events-interval-bytes", "1024"))
}

// A server that is busy with somebody's script refuses everything, SUNSUBSCRIBE too, which ends the
// process of a client of rueidis that sends it. Waits, releases and Close get through that.
func TestAServerThatIsBusyWithAScript(t *testing.T) {
	b := single(t)
	_, err := b.D.Nodes()[0].Do(b.Ctx, "CONFIG", "SET", "busy-reply-threshold", "20")
	require.NoError(t, err)
	c := b.Connect(b.D.ClientOption(), client.Config{Lease: testbed.Long})
	l := b.Take(c, "held")
	blocker := b.Take(b.open(testbed.Long), "waited for")
	closes := b.Connect(b.D.ClientOption(), client.Config{Lease: testbed.Long})
	b.Acquire(b.Ctx, closes, "waited for")
	b.Line(c, "waited for", 1)
	ctx, cancel := context.WithCancel(b.Ctx)
	waiting := b.Acquire(ctx, c, "waited for")
	b.Line(c, "waited for", 2)

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = b.D.Nodes()[0].Do(b.Ctx, "EVAL", `local t = redis.call('TIME')
while redis.call('TIME')[1] - t[1] < 2 do end`, "0") // its end is all that matters
	}()
	b.Eventually("the server is busy", func() bool {
		_, err := c.Inspect(b.Ctx, "held")
		return err != nil
	})
	_, err = c.TryAcquire(b.Ctx, "another")
	require.ErrorIs(t, err, client.ErrUnreachable)
	closes.Close()
	cancel()
	require.Error(t, testbed.Got(t, waiting).Err)
	soon, stop := context.WithTimeout(b.Ctx, 100*time.Millisecond)
	defer stop()
	require.ErrorIs(t, l.Release(soon), client.ErrUnreachable)
	testbed.Got(t, ended)
	b.Eventually("what was given up is given back", func() bool { return !b.Exists("held") })
	b.Release(blocker) // it goes to nobody that is gone
	b.Release(b.Locked(b.Acquire(b.Ctx, c, "waited for")).Lock)
	c.Close()
}
