package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// replicas is how many each primary has.
func (e *env) replicas() int {
	switch all := len(e.D.Nodes()); e.D.Kind {
	case server.KindCluster:
		return (all - 3) / 3
	default:
		return all - 1
	}
}

// A lock that all replicas have is used like any other.
func TestReplicatedLocks(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		n := e.replicas()
		if n == 0 {
			t.Skip("no replica here")
		}
		level := client.WithReplicas(n, 2*time.Second)
		a, b := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		l := e.Take(a, "x", level)
		inner, err := a.Acquire(l.Context(), "x", level)
		require.NoError(t, err, "re-entry is in memory")
		e.Release(inner)
		require.NoError(t, l.Renew(e.Ctx))
		e.tour(a, b, l, level)
	})
}

// tour hands a lock x of a's over, breaks it, and joins it.
func (e *env) tour(a, b *client.Client, l *client.Lock, level client.Option) {
	e.TB.Helper()
	_, err := b.TryAcquire(e.Ctx, "x", level)
	only(e.TB, client.ErrBusy, err)
	waiting := e.Acquire(e.Ctx, b, "x", level)
	e.Line(b, "x", 1)
	e.Release(l)
	next := e.Locked(waiting).Lock
	require.Greater(e.TB, next.Fence(), l.Fence())
	waiting = e.Acquire(e.Ctx, a, "x", level)
	e.Line(b, "x", 1)
	_, err = a.Break(e.Ctx, "x", "test")
	require.NoError(e.TB, err)
	require.ErrorIs(e.TB, e.Ended(next.Context()), client.ErrBroken)
	e.Release(e.Locked(waiting).Lock)
	joined := e.Take(a, "x", level, client.WithOwner("job"))
	e.Release(e.Take(b, "x", level, client.WithOwner("job")))
	e.Release(joined)
}

// One replica is asked for that does not exist: nobody gets the lock, and nothing of it is left.
func TestTooFewReplicas(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		level := client.WithReplicas(e.replicas()+1, 50*time.Millisecond)
		c, other := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		free := func() {
			e.Eventually("it is given back", func() bool { return !e.inspect(other, "x").Held })
		}
		_, err := c.TryAcquire(e.Ctx, "x", level)
		require.ErrorIs(t, err, client.ErrNotReplicated)
		only(t, client.ErrUnreachable, err)
		free()
		_, err = c.TryAcquire(e.Ctx, "x", level, client.WithOwner("job"))
		require.ErrorIs(t, err, client.ErrNotReplicated)
		free()
		_, err = c.Acquire(e.Ctx, "x", level)
		require.ErrorIs(t, err, client.ErrNotReplicated)
		only(t, client.ErrUnreachable, err)
		free()

		l := e.Take(other, "x")
		waiting := e.Acquire(e.Ctx, c, "x", level, client.WithMaxWait(2*time.Second))
		e.Line(other, "x", 1)
		e.Release(l)
		err = (<-waiting).Err
		require.ErrorIs(t, err, client.ErrNotReplicated, "what a message gives is confirmed first")
		only(t, client.ErrUnreachable, err)
		free()
	})
}

// A renewal that too few replicas have does not count.
func TestARenewalOfTooFewReplicasDoesNotCount(t *testing.T) {
	d := server.Replicated(t, 1, server.Owned())
	d.Load(t)
	e := lay(t, d)
	c := e.open(client.Config{Lease: 3 * time.Second, Replicas: 1, ReplicaWait: 100 * time.Millisecond})
	l := e.Take(c, "x")
	require.NoError(t, l.Renew(e.Ctx))
	require.NoError(t, d.Nodes()[1].Kill())
	require.ErrorIs(t, l.Renew(e.Ctx), client.ErrNotReplicated)
	require.NoError(t, l.Context().Err(), "the lease that the replica had goes on")
	require.ErrorIs(t, e.Ended(l.Context()), client.ErrExpired)
}
