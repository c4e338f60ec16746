package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// A guarded lock is used like any other, once the server remembers for long enough.
func TestGuardedLocks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e *env) {
		const lease, guard = 15 * time.Second, 16 * time.Second // a busy machine stands still for seconds at times
		level := client.WithOptions(client.WithLease(lease), client.WithGuard(guard))
		a, b := e.open(client.Config{}), e.open(client.Config{})
		first, err := a.TryAcquire(e.Ctx, "x", level, client.WithFreshAnswer())
		if err != nil {
			var busy *client.BusyError
			require.ErrorAs(t, err, &busy)
			require.Empty(t, busy.Holder.Owner)
			require.Positive(t, busy.Remaining)
			require.LessOrEqual(t, busy.Remaining, guard)
			require.ErrorContains(t, err, "nobody gets it yet")
			first, err = a.Acquire(e.Ctx, "x", level)
		}
		require.NoError(t, err)
		plain := e.Take(a, "plain")
		_, err = a.Acquire(plain.Context(), "plain", level)
		only(t, client.ErrInvalid, err, "what is not guarded is not re-entered as if it were")
		e.Release(plain)
		only(t, client.ErrInvalid, first.RenewFor(e.Ctx, guard+time.Millisecond))
		require.NoError(t, first.RenewFor(e.Ctx, guard))
		e.tour(a, b, first, level)
	})
}

// replicas is how many each primary has.
func (e *env) replicas() int {
	primaries, err := e.D.Primaries(e.Ctx)
	require.NoError(e.TB, err)
	return len(e.D.Nodes())/len(primaries) - 1
}

// A lock that all replicas have is used like any other.
func TestReplicatedLocks(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		n := e.replicas()
		if n == 0 {
			t.Skip("no replica here")
		}
		level := client.WithReplicas(n, 10*time.Second)
		a, b := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		l := e.Take(a, "x", level)
		e.tour(a, b, l, level)
	})
}

// tour re-enters a lock x of a's, renews it, hands it over, breaks it, and joins it.
func (e *env) tour(a, b *client.Client, l *client.Lock, level client.Option) {
	e.TB.Helper()
	inner, err := a.Acquire(l.Context(), "x", level)
	require.NoError(e.TB, err, "re-entry is in memory")
	e.Release(inner)
	require.NoError(e.TB, l.Renew(e.Ctx))
	_, err = b.TryAcquire(e.Ctx, "x", level)
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
