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

// Replication is asynchronous: a primary dies before its replica has heard of a lock, and the replica that takes
// over gives the lock to a second holder. No lock on one primary prevents that. What is promised is a higher
// token, so that what compares tokens refuses the first holder from the second one's first access on.
func TestAPrimaryIsLostBeforeReplication(t *testing.T) {
	d := server.Replicated(t, 1, server.Owned())
	d.Load(t)
	e := lay(t, d)
	primary, replica := d.Nodes()[0], d.Nodes()[1]
	one := e.open(client.Config{Lease: testbed.Long})
	earlier := e.Take(one, "replicated")
	e.Eventually("it is replicated", func() bool {
		n, err := replica.Do(e.Ctx, "EXISTS", e.Prefix+"replicated")
		held, _ := n.AsInt64()
		return err == nil && held == 1
	})
	// The replica stands still, and the primary has no connection to write to: what comes now reaches no one.
	require.NoError(t, replica.Pause())
	e.admin("CLIENT", "KILL", "TYPE", "replica")
	first := e.Take(one, "a")
	require.NoError(t, primary.Kill())
	require.NoError(t, replica.Resume())
	_, err := replica.Do(e.Ctx, "REPLICAOF", "NO", "ONE")
	require.NoError(t, err)

	option := d.ClientOption()
	option.InitAddress = []string{replica.Addr}
	two := e.Connect(option, client.Config{Lease: testbed.Long})
	require.Equal(t, earlier.Owner(), e.inspect(two, "replicated").Holder.Owner, "what was replicated is safe")
	second := e.Take(two, "a")
	require.NoError(t, first.Context().Err(), "the first one has no reason to doubt")
	require.Greater(t, second.Fence(), first.Fence(), "the token tells them apart")
	e.Release(second)
}
