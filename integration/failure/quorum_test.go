// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/quorum"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

const (
	votingLease = time.Second
	votingGuard = 1200 * time.Millisecond
)

var voting = client.Config{Lease: votingLease, Guard: votingGuard, AutoLoad: true}

// several starts five servers of the test's own.
func several(t *testing.T, opts ...server.Option) *bed {
	t.Helper()
	return lay(t, server.Several(t, 5, append(opts, server.Owned())...))
}

// quorum returns a client of its own on all servers, closed at the end of the test.
func (b *bed) quorum(cfg client.Config) *client.Client {
	b.TB.Helper()
	c, err := quorum.Open(b.D.ClientOptions(), b.Configured(cfg))
	require.NoError(b.TB, err)
	b.TB.Cleanup(c.Close)
	return c
}

// some returns so many of the servers, by chance.
func (b *bed) some(n int) []*server.Node {
	nodes := slices.Clone(b.D.Nodes())
	rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes[:n]
}

// Clients want one lock without pause, and any two of its five servers are lost again and again:
// killed, to come back empty or with their data, or paused. Work goes on meanwhile, and nobody is
// ever inside beside another. HOLDFAST_LOSSES is how often each of this is done (default 2).
func TestQuorumLocksSurviveTheLossOfTwo(t *testing.T) {
	t.Parallel()
	losses := times(t, "HOLDFAST_LOSSES", 2)
	// The data of servers that are killed are kept: the system has what they wrote.
	b := several(t, server.WithConfig("appendonly", "yes"), server.WithConfig("appendfsync", "no"),
		server.WithConfig("auto-aof-rewrite-min-size", "4mb"))
	c := b.contest(t, losses+4, func(int) *client.Client { return b.quorum(voting) })
	defer c.contend()()
	c.everybodyEnters(votingGuard + recovery)
	c.reset()
	gaps := map[string][]time.Duration{}
	defer func() {
		for how, some := range gaps {
			slices.Sort(some)
			t.Logf("%d times two were %s; longest time without an entry in the median %v, at most %v",
				len(some), how, some[len(some)/2], some[len(some)-1])
		}
	}()
	for range losses {
		for _, fault := range []struct {
			how        string
			lose, back func(*server.Node) error
			guard      time.Duration
		}{
			{"killed, and empty", (*server.Node).Kill, (*server.Node).Replace, votingGuard},
			{"killed, with their data", (*server.Node).Kill, (*server.Node).Restart, votingGuard},
			{"paused", (*server.Node).Pause, (*server.Node).Resume, 0},
		} {
			two := b.some(2)
			gaps[fault.how] = append(gaps[fault.how], c.loses(fault.how, two, fault.lose))
			c.comeBack(two, fault.back, fault.guard)
			c.alone(c.reset())
			require.False(t, t.Failed(), fault.how)
		}
	}
}

// loses loses servers, and blocks until work went on for longer than a lease: all votes that these had given
// are over by then. It returns the longest time without an entry.
func (c *contest) loses(how string, nodes []*server.Node, lose func(*server.Node) error) time.Duration {
	c.t.Helper()
	require.NoError(c.t, server.Together(nodes, lose))
	lost := now()
	c.enters(recovery)
	<-time.After(lost.Add(votingLease * 5 / 4).Sub(now())) // the length of the loss, not an event
	c.enters(recovery)
	entries, longest := c.seen().within(span{lost, now()})
	c.t.Logf("two %s for %v: %d entries, longest without one %v", how, now().Sub(lost), entries, longest)
	return longest
}

// enters blocks until some entries more, of anybody: those who poll have no order.
func (c *contest) enters(bound time.Duration) {
	c.t.Helper()
	before := len(c.seen().holds)
	c.until(bound, func(p period) bool { return len(p.holds) >= before+contenders })
}

// comeBack brings servers back, and blocks until they vote: not before their guard is over. Who has voted has
// a token that is newer than all before.
func (c *contest) comeBack(nodes []*server.Node, back func(*server.Node) error, guard time.Duration) {
	c.t.Helper()
	began := time.Now()
	require.NoError(c.t, server.Together(nodes, back))
	before := c.seen().holds
	for _, n := range nodes {
		c.until(guard+recovery, func(period) bool {
			m, err := n.Do(c.Ctx, "HGET", prefix+contested, "fence")
			fence, _ := m.AsInt64()
			return err == nil && fence > before[len(before)-1].Token
		})
	}
	assert.GreaterOrEqual(c.t, time.Since(began), guard, "they voted too early")
	c.t.Logf("they vote again after %v: %v", time.Since(began), c.seen())
}

// voted blocks until so many servers have the lock as that owner's.
func (b *bed) voted(name, owner string, votes int) {
	b.TB.Helper()
	b.Eventually("votes", func() bool {
		n := 0
		for _, node := range b.D.Nodes() {
			m, err := node.Do(b.Ctx, "HGET", prefix+name, "owner")
			if has, _ := m.ToString(); err == nil && has == owner {
				n++
			}
		}
		return n == votes
	})
}

// A minority may be down when a client is made. It is connected to when it comes.
func TestAQuorumBeginsWithoutAMinority(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		t.Parallel()
		b := several(t, server.WithFlavour(f))
		nodes := b.D.Nodes()
		require.NoError(t, server.Together(nodes[:3], (*server.Node).Kill))
		_, err := quorum.Open(b.D.ClientOptions(), b.Configured(voting))
		require.ErrorIs(t, err, client.ErrUnreachable)
		require.NoError(t, nodes[2].Restart())
		began := time.Now()
		c := b.quorum(client.Config{Lease: 4 * time.Second, AutoLoad: true}) // renewed on a busy machine too
		require.Less(t, time.Since(began), 15*time.Second)
		l := testbed.Got(t, b.Acquire(b.Ctx, c, "x")).Lock
		require.NotNil(t, l, "two servers are young, and it waits for one of them")
		b.voted("x", l.Owner(), 3)
		require.NoError(t, server.Together(nodes[:2], (*server.Node).Restart))
		b.voted("x", l.Owner(), 5)
		require.NoError(t, server.Together(nodes[3:], (*server.Node).Kill))
		require.NoError(t, l.Renew(b.Ctx))
		b.Release(l)
		b.voted("x", l.Owner(), 0)
	})
}
