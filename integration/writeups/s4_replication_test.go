package writeups

import (
	"context"
	"strconv"
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
	s := openAt(t, d)
	option := d.ClientOption()
	option.InitAddress = []string{replica.Addr}

	one := s.client(client.Config{})
	earlier := s.take(one, "replicated")
	s.Eventually("it is replicated", func() bool {
		n, err := replica.Do(s.Ctx, "EXISTS", s.key("replicated"))
		held, _ := n.AsInt64()
		return err == nil && held == 1
	})

	// The replica stands still, and the primary has no connection to write to: what comes now
	// reaches no one.
	require.NoError(t, replica.Pause())
	_, err := primary.Do(s.Ctx, "CLIENT", "KILL", "TYPE", "replica")
	require.NoError(t, err)
	first := s.take(one, "lock")
	// Whoever asks for an acknowledgement can know, and give such a lock back at once.
	acknowledged, err := primary.Do(s.Ctx, "WAIT", "1", "50")
	require.NoError(t, err)
	replicas, err := acknowledged.AsInt64()
	require.NoError(t, err)
	require.Zero(t, replicas)
	require.NoError(t, primary.Kill())
	require.NoError(t, replica.Resume())
	_, err = replica.Do(s.Ctx, "REPLICAOF", "NO", "ONE")
	require.NoError(t, err)

	two := s.Connect(option, client.Config{Lease: long})
	require.Equal(t, earlier.Owner(), s.busy(two, "replicated").Holder.Owner, "what was replicated is safe")
	second, err := two.TryAcquire(s.Ctx, "lock")
	require.NoError(t, err, "what was not is given to a second holder")
	require.NoError(t, context.Cause(first.Context()), "while the first one has no reason to doubt")
	require.Positive(t, first.Remaining())
	require.NotEqual(t, first.Owner(), second.Owner())
	require.Greater(t, second.Fence(), first.Fence(), "the token tells them apart")

	s.guarded(replica, second.Fence(), true)
	s.guarded(replica, first.Fence(), false)
	s.Release(second)
}

// guarded writes to a resource that compares tokens.
func (s *shop) guarded(node *server.Node, fence int64, accepted bool) {
	s.TB.Helper()
	const script = `local seen = tonumber(redis.call('GET', KEYS[1]) or '0')
if tonumber(ARGV[1]) < seen then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1`
	reply, err := node.Do(s.Ctx, "EVAL", script, "1", "resource", strconv.FormatInt(fence, 10))
	require.NoError(s.TB, err)
	got, err := reply.AsInt64()
	require.NoError(s.TB, err)
	require.Equal(s.TB, accepted, got == 1)
}

// S4 tells Redlock's rule that the time spent on acquiring is lost to the lease: of 30 s after 3 s
// there are 27 left. Here the lease counts from before the request was sent, so behind a slow
// network the holder knows of less time than the server gives it.
func TestS4_AcquiringTakesFromTheLease(t *testing.T) {
	s := openOwn(t)
	c, proxy := s.Through(client.Config{})
	s.free(c, "lock") // connected

	const lease, delay = 30 * time.Second, 300 * time.Millisecond
	proxy.Stall()
	timer := time.AfterFunc(delay, proxy.Resume)
	defer timer.Stop()
	l := s.take(c, "lock", client.WithLease(lease), client.WithoutRenewal())
	remaining := l.Remaining()
	require.LessOrEqual(t, remaining, lease-delay)
	require.Less(t, remaining, s.leased("lock"), "the server began later")
	s.Release(l)
}

// And what took longer to acquire than it is leased for was never acquired.
func TestS4_AcquiringTakesLongerThanTheLease(t *testing.T) {
	s := openOwn(t)
	c, proxy := s.Through(client.Config{})
	s.free(c, "lock")

	proxy.Stall()
	timer := time.AfterFunc(3*short, proxy.Resume)
	defer timer.Stop()
	_, err := c.TryAcquire(s.Ctx, "lock", client.WithLease(short))
	require.ErrorIs(t, err, client.ErrUnreachable)
	s.Release(s.take(s.client(client.Config{}), "lock"))
}
