package failure

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/quorum"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// All five servers die at once, and come back empty: nobody gets the lock before its holder's lease
// is over.
func TestQuorumLocksSurviveTheLossOfAll(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		q := newFleet(t, server.WithFlavour(f))
		defer q.contend()()
		q.everybodyEnters(votingGuard + recovery)
		q.reset()
		killed := time.Now()
		q.kill(q.nodes)
		gone := time.Now()
		q.comeBack(q.nodes, (*server.Node).Restart)
		p := q.seen()
		entries, _ := p.within(span{gone.Add(lateness), gone.Add(votingGuard)})
		assert.Zero(t, entries)
		q.everybodyEnters(recovery)
		q.judge(&sum{}, "killed", q.nodes, killed)
	})
}

// owners are who has the lock on each server; "" where nobody has it.
func (b *bed) owners(name string) []string {
	owners := make([]string, len(b.D.Nodes()))
	for i, n := range b.D.Nodes() {
		if m, err := n.Do(b.Ctx, "HGET", prefix+name, "owner"); err == nil {
			owners[i], _ = m.ToString()
		}
	}
	return owners
}

// voted blocks until so many servers have the lock as that owner's.
func (b *bed) voted(name, owner string, votes int) {
	b.TB.Helper()
	b.Eventually("votes", func() bool {
		n := 0
		for _, has := range b.owners(name) {
			if has == owner {
				n++
			}
		}
		return n == votes
	})
}

// Each server is replaced by an empty one, again and again, while a lock is held. Its holder gets
// the votes back that it loses. A break takes all of them.
func TestALockOutlivesAllItsServers(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		t.Parallel()
		const leases = 20
		b := lay(t, server.Several(t, 5, server.Owned(), server.WithFlavour(f)))
		cfg := client.Config{Lease: votingLease, Guard: votingGuard, AutoLoad: true}
		holder, waiter, operator := b.quorum(cfg), b.quorum(cfg), b.quorum(cfg)
		l := testbed.Got(t, b.Acquire(b.Ctx, holder, "x")).Lock
		require.NotNil(t, l, "the servers are young, and it waits for them")
		next := b.Acquire(b.Ctx, waiter, "x")
		b.voted("x", l.Owner(), 5)
		began, replaced := time.Now(), 0
		for time.Since(began) < leases*votingLease || replaced < 5 {
			n := b.D.Nodes()[replaced%5]
			require.NoError(t, n.Replace())
			at := time.Now()
			b.voted("x", l.Owner(), 5)
			require.NoError(t, l.Context().Err(), "server %d replaced", replaced)
			t.Logf("a vote back %v after server %d was replaced", time.Since(at).Round(time.Millisecond), replaced%5)
			replaced++
		}
		t.Logf("%d replaced in %v", replaced, time.Since(began))
		info, err := operator.Inspect(b.Ctx, "x")
		require.NoError(t, err)
		require.Equal(t, l.Owner(), info.Holder.Owner)
		require.GreaterOrEqual(t, info.Fence, l.Fence(), "servers that voted later have tokens of their own")

		at := time.Now()
		info, err = operator.Break(b.Ctx, "x", "it takes too long")
		require.NoError(t, err)
		require.Equal(t, l.Owner(), info.Holder.Owner)
		cause := b.Ended(l.Context())
		t.Logf("%v after the break: %v", time.Since(at).Round(time.Millisecond), cause)
		require.ErrorIs(t, cause, client.ErrBroken)
		require.ErrorContains(t, cause, "it takes too long")
		o := b.Locked(next)
		t.Logf("the next holder %v after it", o.At.Sub(at).Round(time.Millisecond))
		require.Greater(t, o.Lock.Fence(), l.Fence())
		require.ErrorIs(t, l.Release(b.Ctx), client.ErrLost)
		b.voted("x", o.Lock.Owner(), 5)
		b.Release(o.Lock)
		b.voted("x", o.Lock.Owner(), 0)
	})
}

// A minority may be down when a client is made. It is connected to when it comes.
func TestAQuorumBeginsWithoutAMinority(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		t.Parallel()
		b := lay(t, server.Several(t, 5, server.Owned(), server.WithFlavour(f)))
		nodes := b.D.Nodes()
		cfg := client.Config{Lease: votingLease, Guard: votingGuard, AutoLoad: true}
		for _, n := range nodes[:3] {
			require.NoError(t, n.Kill())
		}
		_, err := quorum.Open(b.D.ClientOptions(), b.Configured(cfg))
		require.ErrorIs(t, err, client.ErrUnreachable)
		require.NoError(t, nodes[2].Restart())
		began := time.Now()
		c := b.quorum(cfg)
		require.Less(t, time.Since(began), 5*time.Second)
		l := testbed.Got(t, b.Acquire(b.Ctx, c, "x")).Lock
		require.NotNil(t, l, "two servers are young, and it waits for one of them")
		b.voted("x", l.Owner(), 3)
		require.NoError(t, nodes[0].Restart())
		require.NoError(t, nodes[1].Restart())
		b.voted("x", l.Owner(), 5)
		require.NoError(t, nodes[3].Kill())
		require.NoError(t, nodes[4].Kill())
		require.NoError(t, l.Renew(b.Ctx))
		b.Release(l)
		b.voted("x", l.Owner(), 0)
	})
}

// A server that is given twice, by two names, would have two votes.
func TestAServerHasOneVote(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		t.Parallel()
		b := lay(t, server.Several(t, 5, server.Owned(), server.WithFlavour(f)))
		nodes := b.D.Nodes()
		cfg := b.Configured(client.Config{Lease: votingLease, Guard: votingGuard, AutoLoad: true})
		options := b.D.ClientOptions()
		options[4] = options[3]
		_, err := quorum.Open(options, cfg)
		require.ErrorIs(t, err, client.ErrArgument)
		require.ErrorContains(t, err, nodes[3].Addr)
		options[4].InitAddress = []string{strings.Replace(nodes[3].Addr, "127.0.0.1", "localhost", 1)}
		_, err = quorum.Open(options, cfg)
		require.ErrorIs(t, err, client.ErrArgument)

		// It is down at first, and then the client cannot refuse to begin.
		require.NoError(t, nodes[3].Kill())
		c, err := quorum.Open(options, cfg)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		l := testbed.Got(t, b.Acquire(b.Ctx, c, "x")).Lock
		require.NotNil(t, l)
		require.NoError(t, nodes[3].Restart())
		b.Eventually("its vote", func() bool { return b.owners("x")[3] == l.Owner() })
		b.Release(l)
		require.NoError(t, nodes[0].Kill())
		b.Release(b.Take(c, "y"))
		require.NoError(t, nodes[1].Kill())
		_, err = c.TryAcquire(b.Ctx, "z")
		require.ErrorIs(t, err, client.ErrUnreachable, "two of five answer")

		// A replica has the data of its primary.
		require.NoError(t, nodes[0].Restart())
		require.NoError(t, nodes[1].Restart())
		primary := strings.Split(nodes[3].Addr, ":")
		_, err = nodes[4].Do(b.Ctx, "REPLICAOF", primary[0], primary[1])
		require.NoError(t, err)
		b.Eventually("it follows", func() bool { return nodes[4].Info(b.Ctx, "replication", "master_link_status") == "up" })
		_, err = quorum.Open(b.D.ClientOptions(), cfg)
		require.ErrorIs(t, err, client.ErrArgument)
	})
}
