package failure

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// Clients want one lock without pause, and count on it only when all replicas of its primary have
// it. The primary is killed again and again: nobody is ever inside beside another, and the tokens
// keep their order. HOLDFAST_FAILOVERS is how often (default 1).
func TestReplicatedLocksSurviveTheLossOfThePrimary(t *testing.T) {
	survives(t, 0, true, func(nodes int) client.Option { return client.WithReplicas(nodes-1, 500*time.Millisecond) })
}

// survives kills the primaries of a Cluster and of a Sentinel. pause is what the level may add to a
// recovery; keeps says that it loses no lock.
func survives(t *testing.T, pause time.Duration, keeps bool, level func(nodes int) client.Option) {
	failovers := times(t, "HOLDFAST_FAILOVERS", 1)
	server.Each(t, func(t *testing.T, f server.Flavour) {
		t.Run("cluster", func(t *testing.T) {
			t.Parallel()
			b := lay(t, server.Cluster(t, server.Owned(), server.WithFlavour(f)))
			primary, replica := b.pair(contested)
			killPrimaries(t, b, failovers, pause, keeps, level, primary, replica)
		})
		t.Run("sentinel", func(t *testing.T) {
			t.Parallel()
			b := lay(t, server.Sentinel(t, server.Owned(), server.WithFlavour(f)))
			killPrimaries(t, b, failovers, pause, keeps, level, b.D.Nodes()...)
		})
	})
}

// times is how often something is done, which the environment can change.
func times(t *testing.T, name string, n int) int {
	t.Helper()
	if text := os.Getenv(name); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err, name)
	}
	return n
}

// killPrimaries kills the primary among the nodes, and brings it back as a replica when another one is the
// primary: before that, it would come back empty, and everything would be lost.
func killPrimaries(t *testing.T, b *bed, failovers int, pause time.Duration, keeps bool,
	level func(nodes int) client.Option, nodes ...*server.Node) {
	var cancel context.CancelFunc
	b.Ctx, cancel = context.WithTimeout(t.Context(), time.Duration(failovers+1)*time.Minute)
	defer cancel()
	c := contest{bed: b}
	for range contenders {
		c.clients = append(c.clients, b.Connect(b.D.ClientOption(), client.Config{}))
	}
	defer c.contend(client.WithLease(forcedLease), level(len(nodes)))()
	c.everybodyEnters(pause + recovery)
	c.reset()
	for i := range failovers {
		was := c.primary(nodes)
		kept := func(*server.Node) {}
		if keeps {
			kept = c.keep(t, "{"+prefix+contested+"}"+strconv.Itoa(i), level(len(nodes)))
		}
		took := span{from: time.Now()}
		require.NoError(t, was.Kill())
		took.to = time.Now()
		c.Eventually("another primary", func() bool { return c.primary(nodes) != nil })
		kept(c.primary(nodes))
		require.NoError(t, was.Restart())
		c.everybodyEnters(2*forcedLease + pause + recovery)
		c.room.log(t, "SIGKILL "+strconv.Itoa(i+1), took, time.Since(took.to))
		p := c.reset()
		for _, o := range p.overlaps[:min(1, len(p.overlaps))] {
			assert.Fail(t, "two inside", "%d times in %d entries; first %v", len(p.overlaps), p.total(), o)
		}
		assert.Zero(t, p.disorder, "tokens that were not above all before")
		// One that comes back under Sentinel takes itself for the primary until it is told. It is
		// empty: the library is missing too, and nobody gets a lock there.
		all := len(p.strange)
		strange := slices.DeleteFunc(p.strange, func(err error) bool { return errors.Is(err, client.ErrLibrary) })
		assert.Empty(t, strange[:min(3, len(strange))])
		t.Logf("%d calls at a server that had forgotten the library", all-len(strange))
		c.Eventually("all replicas follow", func() bool { return c.following(nodes) == len(nodes)-1 })
	}
}

// keep takes a lock. The func that it returns asserts that a server has it too, and that no holder has
// lost one since. It is called before one comes back that has forgotten them, which is another fault.
func (c *contest) keep(t *testing.T, name string, level client.Option) func(at *server.Node) {
	var l *client.Lock
	c.Eventually("a lock", func() bool {
		var err error
		l, err = c.clients[0].TryAcquire(c.Ctx, name, client.WithLease(testbed.Long), level)
		return err == nil
	})
	return func(at *server.Node) {
		m, err := at.Do(c.Ctx, "HMGET", prefix+name, "owner", "fence")
		assert.NoError(t, err)
		known, _ := m.AsStrSlice()
		assert.Equal(t, []string{l.Owner(), strconv.FormatInt(l.Fence(), 10)}, known, "the last lock of the one before")
		assert.NoError(t, l.Context().Err())
		assert.Zero(t, c.seen().taken, "locks lost while their leases had not ended")
	}
}

// primary is the one among the nodes that others follow or that they follow; nil if there is none
// now. One that comes back may take itself for it for a while.
func (c *contest) primary(nodes []*server.Node) *server.Node {
	for _, n := range nodes {
		if yes, err := n.IsPrimary(c.Ctx); err == nil && yes {
			return n
		}
	}
	return nil
}

// following counts the replicas that are in step with their primary.
func (c *contest) following(nodes []*server.Node) (count int) {
	for _, n := range nodes {
		if n.Info(c.Ctx, "replication", "master_link_status") == "up" {
			count++
		}
	}
	return count
}

// A client that has heard of a node that is dead now finds the one that took its place, and a dead
// node of another shard is no matter.
func TestReplicatedLocksFindTheirPrimary(t *testing.T) {
	t.Parallel()
	b := lay(t, server.Cluster(t, server.Owned()))
	c := b.open(testbed.Long)
	level := client.WithReplicas(1, 500*time.Millisecond)
	nodes := b.D.Nodes()
	var here, elsewhere string // names of the first primary's slots, and of the second's
	for i := 0; here == "" || elsewhere == ""; i++ {
		name := "n" + strconv.Itoa(i)
		switch primary, _ := b.pair(name); primary {
		case nodes[0]:
			here = name
		case nodes[1]:
			elsewhere = name
		}
	}
	b.Release(b.Take(c, here, level))
	held := b.Take(c, "{"+prefix+here+"}held", level)
	require.NoError(t, nodes[5].Kill(), "a replica of the third primary")
	for range 40 {
		b.Release(b.Take(c, elsewhere, level))
	}
	require.NoError(t, nodes[0].Kill())
	require.NoError(t, nodes[3].Promoted(b.Ctx))
	b.Eventually("the new primary answers, that it has no replica", func() bool {
		_, err := c.TryAcquire(b.Ctx, here, level)
		return errors.Is(err, client.ErrNotReplicated)
	})
	require.ErrorIs(t, held.Renew(b.Ctx), client.ErrNotReplicated, "it is known there")
	require.NoError(t, held.Context().Err())
	b.Release(held)
	b.Release(b.Take(c, elsewhere, level))
}
