package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

func TestAServerThatIsDown(t *testing.T) {
	e := lay(t, server.Single(t, server.Owned()))
	e.D.Load(t)
	c, holder := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: 2 * time.Second})
	l := e.Take(holder, "held")
	waiting := e.Acquire(e.Ctx, e.open(client.Config{Lease: time.Second}), "held")
	e.Line(c, "held", 1)
	require.NoError(t, e.D.Nodes()[0].Kill())
	down := func(err error) {
		t.Helper()
		only(t, client.ErrUnreachable, err)
	}
	started := time.Now()
	_, err := c.TryAcquire(e.Ctx, "a")
	down(err)
	_, err = c.Acquire(e.Ctx, "a")
	down(err)
	_, err = c.Inspect(e.Ctx, "a")
	down(err)
	_, err = c.Version(e.Ctx)
	down(err)
	require.Less(t, time.Since(started), 5*time.Second, "quickly")
	down(testbed.Got(e.TB, waiting).Err)
	require.ErrorIs(t, e.Ended(l.Context()), client.ErrExpired)
	require.ErrorIs(t, l.Release(e.Ctx), client.ErrExpired)
	_, err = client.Open(e.D.ClientOption(), client.Config{})
	down(err)

	require.NoError(t, e.D.Nodes()[0].Restart())
	e.D.Load(t)
	e.Eventually("it works again", func() bool {
		l, err := c.TryAcquire(e.Ctx, "a")
		return err == nil && l.Release(e.Ctx) == nil
	})
}

// Release goes on while the server cannot be reached, until the lease has ended.
func TestReleaseWhileTheServerIsDown(t *testing.T) {
	e := lay(t, server.Single(t, server.Owned()))
	e.D.Load(t)
	c := e.open(client.Config{Lease: time.Second})
	l := e.Take(c, "a")
	require.NoError(t, e.D.Nodes()[0].Kill())
	started := time.Now()
	err := l.Release(e.Ctx)
	only(t, client.ErrUnreachable, err)
	require.Less(t, time.Since(started), 3*time.Second)
	require.ErrorIs(t, e.Ended(l.Context()), client.ErrReleased)
}
