package failure

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

const guard = forcedLease + time.Second

// Clients want one lock without pause, and its primary is killed again and again. The next one may
// have forgotten the last lock, and yet nobody is ever inside beside another. HOLDFAST_FAILOVERS is
// how often (default 1).
func TestGuardedLocksSurviveTheLossOfThePrimary(t *testing.T) {
	survives(t, guard, false, func(int) client.Option { return client.WithGuard(guard) })
}

// A failover by force: the old primary goes on until it hears of it.
func TestGuardedLocksSurviveForce(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		b := lay(t, server.Cluster(t, server.Owned(), server.WithFlavour(f)))
		var cancel context.CancelFunc
		b.Ctx, cancel = context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		c := contest{bed: b}
		for range contenders {
			c.clients = append(c.clients, b.Connect(b.D.ClientOption(), client.Config{}))
		}
		c.pair[0], c.pair[1] = b.pair(contested)
		defer c.contend(client.WithLease(forcedLease), client.WithGuard(guard))()
		c.everybodyEnters(guard + recovery)
		for _, how := range []string{"FORCE", "TAKEOVER"} {
			c.failover(t, how, guard+forcedLease+recovery, func() error { return c.pair[1].Failover(c.Ctx, how) })
			c.alone(t, c.reset())
		}
	})
}

// alone asserts that nobody was inside beside another.
func (c *contest) alone(t *testing.T, p period) {
	t.Helper()
	for _, o := range p.overlaps[:min(1, len(p.overlaps))] {
		assert.Fail(t, "two inside", "%d times in %d entries; first %v", len(p.overlaps), p.total(), o)
	}
	assert.Zero(t, p.disorder, "tokens that were not above all before")
	assert.Empty(t, p.strange)
}

// A server without persistence is killed and comes back empty, again and again. HOLDFAST_RESTARTS is
// how often (default 5).
func TestGuardedLocksSurviveRestarts(t *testing.T) {
	const lease, guard = time.Second, 1200 * time.Millisecond
	restarts := times(t, "HOLDFAST_RESTARTS", 5)
	server.Each(t, func(t *testing.T, f server.Flavour) {
		b := lay(t, server.Single(t, server.Owned(), server.WithFlavour(f)))
		var cancel context.CancelFunc
		b.Ctx, cancel = context.WithTimeout(t.Context(), time.Duration(restarts+4)*15*time.Second)
		defer cancel()
		node := b.D.Nodes()[0]
		c := contest{bed: b, pair: [2]*server.Node{node, node}}
		for range contenders {
			c.clients = append(c.clients, b.Connect(b.D.ClientOption(), client.Config{AutoLoad: true}))
		}
		defer c.contend(client.WithLease(lease), client.WithGuard(guard))()
		c.everybodyEnters(guard + recovery)
		c.reset()
		for range restarts {
			took := span{from: time.Now()}
			require.NoError(t, node.Kill())
			took.to = time.Now()
			c.reset() // whoever comes in from now on has the lock of the server that is empty
			require.NoError(t, node.Restart())
			c.everybodyEnters(guard + recovery)
			c.room.log(t, "restart", took, time.Since(took.to))
			p := c.reset()
			c.alone(t, p)
			assert.GreaterOrEqual(t, p.first.Sub(took.to), guard, "the pause")
		}
	})
}

// The replica stands still, and hears nothing of a lock; the primary dies, and the replica is
// promoted. Without a guard it grants the lock at once: TestS4_PrimaryLostBeforeReplication.
func TestAGuardedLockIsNotGrantedByAReplicaThatNeverHeardOfIt(t *testing.T) {
	t.Parallel()
	const lease, guard = 2 * time.Second, 2500 * time.Millisecond
	b := lay(t, server.Replicated(t, 1, server.Owned()))
	primary, replica := b.D.Nodes()[0], b.D.Nodes()[1]
	level := client.WithOptions(client.WithLease(lease), client.WithGuard(guard))
	one := b.open(lease)
	warm, err := one.Acquire(b.Ctx, "warm", level)
	require.NoError(t, err, "the primary's memory grows old enough meanwhile")
	b.Release(warm)
	require.NoError(t, replica.Pause())
	_, err = primary.Do(b.Ctx, "CLIENT", "KILL", "TYPE", "replica")
	require.NoError(t, err)
	first := b.Take(one, "lock", level)
	require.NoError(t, primary.Kill())
	require.NoError(t, replica.Resume())
	_, err = replica.Do(b.Ctx, "REPLICAOF", "NO", "ONE")
	require.NoError(t, err)

	two := b.Connect(rueidis.ClientOption{InitAddress: []string{replica.Addr}}, client.Config{})
	_, err = two.TryAcquire(b.Ctx, "lock", level)
	var busy *client.BusyError
	require.ErrorAs(t, err, &busy)
	require.Empty(t, busy.Holder.Owner, "nobody has it")
	require.Greater(t, busy.Remaining, first.Remaining(), "and nobody gets it while the first holder counts on it")
	second, err := two.Acquire(b.Ctx, "lock", level)
	require.NoError(t, err)
	require.ErrorIs(t, context.Cause(first.Context()), client.ErrExpired)
	require.Greater(t, second.Fence(), first.Fence())
	b.Release(second)
}

// A primary that became a replica without a full resynchronisation, and is promoted again, still has
// the memory of the library. Its replication id is new, and so is what it can vouch for.
func TestAFormerPrimaryRemembersAnew(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		t.Parallel()
		b := lay(t, server.Replicated(t, 1, server.Owned(), server.WithFlavour(f)))
		one, other := b.D.Nodes()[0], b.D.Nodes()[1]
		memory := func(args ...string) []string {
			m, err := one.Do(b.Ctx, append([]string{"FCALL", functions.Memory, "0"}, args...)...)
			require.NoError(t, err)
			texts, err := m.AsStrSlice()
			require.NoError(t, err)
			return texts
		}
		swap := func(from, to *server.Node) {
			b.Eventually("a failover in good order", func() bool {
				_, err := from.Do(b.Ctx, "FAILOVER")
				return err == nil
			})
			b.Eventually("the roles have changed", func() bool {
				old, err := from.IsPrimary(b.Ctx)
				now, err2 := to.IsPrimary(b.Ctx)
				return err == nil && err2 == nil && !old && now && from.Info(b.Ctx, "replication", "master_link_status") == "up"
			})
		}
		m := memory()
		old := memory(m[0], m[1], "1")
		require.Equal(t, "1", old[2])
		const grant = "30000"
		swap(one, other)
		swap(other, one)
		require.NotEqual(t, "0", other.Info(b.Ctx, "stats", "sync_partial_ok"), "a full one would clear the memory anyway")
		again := memory()
		require.Equal(t, old[0], again[0], "the same process")
		require.NotEqual(t, old[1], again[1])
		require.NotEqual(t, "1", again[2])
		r, err := one.Do(b.Ctx, "FCALL", functions.Acquire, "1", prefix+"x", "owner", grant, functions.OptGuard, grant)
		require.NoError(t, err)
		values, err := r.ToArray()
		require.NoError(t, err)
		yes, err := values[0].AsInt64()
		require.NoError(t, err)
		require.Zero(t, yes, "%v", values)
	})
}

// A hold that the server has forgotten is not kept alive by another one of its owner, whose release
// would free the lock beside it.
func TestAForgottenHoldIsNotRenewed(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		t.Parallel()
		const lease, guard = 20 * time.Second, 25 * time.Second
		b := lay(t, server.Single(t, server.Owned(), server.WithFlavour(f)))
		node := b.D.Nodes()[0]
		m, err := node.Do(b.Ctx, "FCALL", functions.Memory, "0")
		require.NoError(t, err)
		memory, err := m.AsStrSlice()
		require.NoError(t, err)
		_, err = node.Do(b.Ctx, "FCALL", functions.Memory, "0", memory[0], memory[1], "1")
		require.NoError(t, err)
		level := client.WithOptions(client.WithLease(lease), client.WithGuard(guard), client.WithOwner("job"))
		one, two := b.open(lease), b.open(lease)
		kept := b.Take(one, "x", level)
		_, err = node.Do(b.Ctx, "SAVE")
		require.NoError(t, err)
		forgotten := b.Take(two, "x", level)
		require.NoError(t, node.Restart())
		b.Eventually("the hold that was saved is renewed", func() bool { return kept.Renew(b.Ctx) == nil })
		b.Eventually("the other one is not", func() bool { return errors.Is(forgotten.Renew(b.Ctx), client.ErrLost) })
		require.Error(t, forgotten.Context().Err())
		b.Release(kept)
	})
}
