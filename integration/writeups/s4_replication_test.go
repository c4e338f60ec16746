package writeups

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
)

// S4 turns to Redlock because replication is asynchronous (S0 leaves it open): a primary dies
// before its replica has heard of a lock, and the replica that takes over gives the lock to a
// second holder. A lock on one primary cannot prevent that, this one neither, as the test shows.
// What is promised is that the second token is higher, so that a resource that compares tokens
// refuses the first holder from the second one's first access on.
func TestS4_PrimaryLostBeforeReplication(t *testing.T) {
	d := server.Replicated(t, 1, server.Owned())
	d.Load(t)
	primary, replica := d.Nodes()[0], d.Nodes()[1]
	b := openAt(t, d)
	option := d.ClientOption()
	option.InitAddress = []string{replica.Addr}

	one := b.client(client.Config{})
	earlier := b.take(one, "replicated")
	b.Eventually("it is replicated", func() bool {
		n, err := replica.Do(b.Ctx, "EXISTS", b.Prefix+"replicated")
		held, _ := n.AsInt64()
		return err == nil && held == 1
	})

	// The replica stands still, and the primary has no connection to write to: what comes now
	// reaches no one.
	require.NoError(t, replica.Pause())
	_, err := primary.Do(b.Ctx, "CLIENT", "KILL", "TYPE", "replica")
	require.NoError(t, err)
	first := b.take(one, "lock")
	// Whoever asks for an acknowledgement can know, and give such a lock back at once.
	acknowledged, err := primary.Do(b.Ctx, "WAIT", "1", "50")
	require.NoError(t, err)
	replicas, err := acknowledged.AsInt64()
	require.NoError(t, err)
	require.Zero(t, replicas)
	require.NoError(t, primary.Kill())
	require.NoError(t, replica.Resume())
	_, err = replica.Do(b.Ctx, "REPLICAOF", "NO", "ONE")
	require.NoError(t, err)

	two := b.Connect(option, client.Config{Lease: long})
	b.holder(two, earlier) // what was replicated is safe
	second, err := two.TryAcquire(b.Ctx, "lock")
	require.NoError(t, err, "what was not is given to a second holder")
	require.NoError(t, context.Cause(first.Context()), "while the first one has no reason to doubt")
	require.Positive(t, first.Remaining())
	require.NotEqual(t, first.Owner(), second.Owner())
	require.Greater(t, second.Fence(), first.Fence(), "the token tells them apart")

	b.Release(second)
}

// S4 tells Redlock's rule that the time spent on acquiring is lost to the lease: of 30 s after 3 s
// there are 27 left. Here the lease counts from before the request was sent, so behind a slow
// network the holder knows of less time than the server gives it.
func TestS4_AcquiringTakesFromTheLease(t *testing.T) {
	b := openOwn(t)
	c, proxy := b.Through(client.Config{})
	b.free(c, "lock") // connected

	const lease, delay = 30 * time.Second, 300 * time.Millisecond
	proxy.Stall()
	timer := time.AfterFunc(delay, proxy.Resume)
	defer timer.Stop()
	l := b.take(c, "lock", client.WithLease(lease), client.WithoutRenewal())
	remaining := l.Remaining()
	require.LessOrEqual(t, remaining, lease-delay)
	require.Less(t, remaining, b.ttl("lock"), "the server began later")
	b.Release(l)
}

// And what took longer to acquire than it is leased for was never acquired.
func TestS4_AcquiringTakesLongerThanTheLease(t *testing.T) {
	b := openOwn(t)
	c, proxy := b.Through(client.Config{})
	b.free(c, "lock")

	proxy.Stall()
	timer := time.AfterFunc(3*short, proxy.Resume)
	defer timer.Stop()
	_, err := c.TryAcquire(b.Ctx, "lock", client.WithLease(short))
	require.ErrorIs(t, err, client.ErrUnreachable)
	b.Release(b.take(b.client(client.Config{}), "lock"))
}
