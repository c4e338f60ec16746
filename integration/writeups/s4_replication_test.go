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

// S4 turns to Redlock because replication is asynchronous (S0 leaves it open): a primary dies before its replica has heard
// of a lock, and the replica that takes over gives the lock to a second holder. A lock on one primary cannot prevent
// that, this one neither, as the test shows. What is promised is that the second token is higher, so that a resource that
// compares tokens refuses the first holder from the second one's first access on.
func TestS4_PrimaryLostBeforeReplication(t *testing.T) {
	d := server.Replicated(t, 1, server.Owned())
	d.Load(t)
	primary, replica := d.Nodes()[0], d.Nodes()[1]
	before := openAt(t, d.ClientOption())
	option := d.ClientOption()
	option.InitAddress = []string{replica.Addr}

	one := before.client(client.Config{})
	earlier := before.take(one, "replicated")
	require.Eventually(t, func() bool {
		n, err := replica.Do(t.Context(), "EXISTS", before.key("replicated"))
		held, _ := n.AsInt64()
		return err == nil && held == 1
	}, soon, time.Millisecond)

	// The replica stands still, and the primary has no connection to write to: what comes now reaches no one.
	require.NoError(t, replica.Pause())
	_, err := primary.Do(t.Context(), "CLIENT", "KILL", "TYPE", "replica")
	require.NoError(t, err)
	first := before.take(one, "lock")
	// Whoever asks for an acknowledgement can know, and give such a lock back at once.
	acknowledged, err := primary.Do(t.Context(), "WAIT", "1", "50")
	require.NoError(t, err)
	replicas, err := acknowledged.AsInt64()
	require.NoError(t, err)
	require.Zero(t, replicas)
	require.NoError(t, primary.Kill())
	require.NoError(t, replica.Resume())
	_, err = replica.Do(t.Context(), "REPLICAOF", "NO", "ONE")
	require.NoError(t, err)

	after := openAt(t, option)
	after.prefix = before.prefix
	two := after.client(client.Config{})
	require.Equal(t, earlier.Owner(), after.busy(two, "replicated").Holder.Owner, "what was replicated is safe")
	second, err := two.TryAcquire(after.ctx, "lock")
	require.NoError(t, err, "what was not is given to a second holder")
	require.NoError(t, context.Cause(first.Context()), "while the first one has no reason to doubt")
	require.Positive(t, first.Remaining())
	require.NotEqual(t, first.Owner(), second.Owner())
	require.Greater(t, second.Fence(), first.Fence(), "the token tells them apart")

	after.plain.guarded(second.Fence(), true)
	after.plain.guarded(first.Fence(), false)
	after.release(second)
}

// guarded writes to a resource that compares tokens.
func (p plain) guarded(fence int64, accepted bool) {
	p.t.Helper()
	const script = `local seen = tonumber(redis.call('GET', KEYS[1]) or '0')
if tonumber(ARGV[1]) < seen then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1`
	got, err := p.redis.Do(p.ctx, p.redis.B().Eval().Script(script).Numkeys(1).Key("resource").Arg(strconv.FormatInt(fence, 10)).Build()).AsBool()
	require.NoError(p.t, err)
	require.Equal(p.t, accepted, got)
}

// S4 tells Redlock's rule that the time spent on acquiring is lost to the lease: of 30 s after 3 s there are 27 left. Here
// the lease counts from before the request was sent, so behind a slow network the holder knows of less time than the
// server gives it.
func TestS4_AcquiringTakesFromTheLease(t *testing.T) {
	s, d := openOwn(t)
	proxy := proxyTo(t, d)
	behind := s.option
	behind.InitAddress = []string{proxy.Addr}
	c := s.clientAt(behind, client.Config{})
	s.free(c, "lock") // connected

	const lease, delay = 30 * time.Second, 300 * time.Millisecond
	proxy.Stall()
	timer := time.AfterFunc(delay, proxy.Resume)
	defer timer.Stop()
	l := s.take(c, "lock", client.WithLease(lease), client.WithoutRenewal())
	remaining := l.Remaining()
	require.LessOrEqual(t, remaining, lease-delay)
	require.Less(t, remaining, s.leased("lock"), "the server began later")
	s.release(l)
}

// And what took longer to acquire than it is leased for was never acquired.
func TestS4_AcquiringTakesLongerThanTheLease(t *testing.T) {
	s, d := openOwn(t)
	proxy := proxyTo(t, d)
	behind := s.option
	behind.InitAddress = []string{proxy.Addr}
	c := s.clientAt(behind, client.Config{})
	s.free(c, "lock")

	proxy.Stall()
	timer := time.AfterFunc(3*short, proxy.Resume)
	defer timer.Stop()
	_, err := c.TryAcquire(s.ctx, "lock", client.WithLease(short))
	require.ErrorIs(t, err, client.ErrUnreachable)
	s.release(s.take(s.client(client.Config{}), "lock"))
}

// proxyTo is the network in front of a server.
func proxyTo(t *testing.T, d *server.Deployment) *server.Proxy {
	t.Helper()
	return server.NewProxy(t, d.Addrs()[0])
}
