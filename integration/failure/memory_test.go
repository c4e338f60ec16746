package failure

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// The replica stands still, and hears nothing of a lock; the primary dies, and the replica is
// promoted. Without a guard it grants the lock at once: TestAPrimaryIsLostBeforeReplication.
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

// What the key keeps needs no process, no message and no memory of the server. The primary is lost after a
// release and a break, and its replica is promoted.
func TestAMinimumAndABreakOutliveAFailover(t *testing.T) {
	t.Parallel()
	b := lay(t, server.Replicated(t, 1, server.Owned()))
	c := b.open(testbed.Long)
	b.Release(b.Take(c, "a", client.WithMinHold(testbed.Long)))
	broken := b.Take(c, "b", client.WithRenewal(0))
	_, err := b.open(testbed.Long).Break(b.Ctx, "b", "deploy stuck")
	require.NoError(t, err)
	primary, replica := b.D.Nodes()[0], b.D.Nodes()[1]
	b.replicated(primary, replica)
	_, err = replica.Do(b.Ctx, "REPLICAOF", "NO", "ONE")
	require.NoError(t, err)
	refused := func(function, name, owner, why string) {
		m, err := replica.Do(b.Ctx, "FCALL", function, "1", prefix+name, owner, "1000")
		require.NoError(t, err)
		values, err := m.ToAny()
		require.NoError(t, err)
		require.Regexp(t, `^\[0 .* `+why, fmt.Sprint(values))
	}
	refused(functions.Acquire, "a", "another", functions.WhyKept)
	refused(functions.Renew, "b", broken.Owner(), functions.WhyBroken+" .*deploy stuck")
}

// A token that came from elsewhere, ahead of this server's clock, outlives the release and a load of the
// library, which takes the server's memory.
func TestATokenAheadOfTheClockSurvivesALoad(t *testing.T) {
	b := single(t)
	c := b.open(testbed.Long)
	l := b.Take(c, "a")
	ahead := time.Now().Add(30 * time.Second).UnixMicro()
	b.do("FCALL", functions.Renew, "1", prefix+"a", l.Owner(), "20000", functions.OptRaise, strconv.FormatInt(ahead, 10))
	b.do("FCALL", functions.Release, "1", prefix+"a", l.Owner())
	b.do("FUNCTION", "LOAD", "REPLACE", functions.Source)
	next := b.Take(b.open(testbed.Long), "a") // c does not know yet that it has lost it
	require.Greater(t, next.Fence(), ahead)
	b.Release(next)
	_ = l.Release(b.Ctx)
}

// The holder hears nothing while its lock is broken and another one has had it.
func TestTheReasonOfABreakIsLearnedWithoutItsMessage(t *testing.T) {
	b := single(t)
	c, proxy := b.through(testbed.Long)
	first := b.open(testbed.Long)
	l := b.Take(first, "a")
	waiting := b.Acquire(b.Ctx, c, "a") // so it is told on its channel
	b.Line(first, "a", 1)
	b.Release(l)
	l = b.Locked(waiting).Lock
	require.NoError(t, l.Renew(b.Ctx))
	proxy.Stall()
	_, err := first.Break(b.Ctx, "a", "deploy stuck")
	require.NoError(t, err)
	next := b.Take(first, "a")
	proxy.Cut()
	proxy.Resume()
	b.Eventually("the holder knows", func() bool { return l.Renew(b.Ctx) != nil && l.Context().Err() != nil })
	var lost *client.LostError
	require.ErrorAs(t, context.Cause(l.Context()), &lost)
	require.ErrorIs(t, lost, client.ErrBroken)
	require.Contains(t, lost.Reason, "deploy stuck")
	b.Release(next)
}
