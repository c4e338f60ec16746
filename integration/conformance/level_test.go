// SPDX-License-Identifier: Apache-2.0

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
	primaries, err := e.D.Primaries(e.Ctx)
	require.NoError(e.TB, err)
	return len(e.D.Nodes())/len(primaries) - 1
}

// One replica is asked for that does not exist: nobody gets the lock, and nothing of it is left.
func TestTooFewReplicas(t *testing.T) {
	t.Parallel()
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
		waiting := e.Acquire(e.Ctx, c, "x", level, client.WithMaxWait(5*time.Second))
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
	t.Parallel()
	d := server.Replicated(t, 1, server.Owned())
	d.Load(t)
	e := lay(t, d)
	c := e.open(client.Config{Lease: 20 * time.Second, Replicas: 1, ReplicaWait: 3 * time.Second})
	l := e.Take(c, "x")
	require.NoError(t, l.Renew(e.Ctx))
	require.NoError(t, d.Nodes()[1].Kill())
	require.ErrorIs(t, l.Renew(e.Ctx), client.ErrNotReplicated)
	require.NoError(t, l.Context().Err(), "the lease that the replica had goes on")
	require.ErrorIs(t, e.Ended(l.Context()), client.ErrExpired)
}
