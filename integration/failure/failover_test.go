package failure

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// replicated blocks until a replica has what the primary had written before the call.
func (b *bed) replicated(primary *server.Node) {
	b.TB.Helper()
	written := int64(-1)
	b.Eventually("replication", func() bool {
		m, err := primary.Do(b.Ctx, "ROLE")
		if err != nil {
			return false
		}
		role, err := m.ToArray()
		if err != nil || len(role) < 3 {
			return false
		}
		if written < 0 {
			written, _ = role[1].AsInt64()
		}
		replicas, _ := role[2].ToArray()
		for _, r := range replicas {
			fields, err := r.AsStrSlice()
			if err != nil {
				return false
			}
			if offset, err := strconv.ParseInt(fields[2], 10, 64); err != nil || offset < written {
				return false
			}
		}
		return len(replicas) > 0
	})
}

// owning returns the primary of a name's slot, as started.
func (b *bed) owning(name string) *server.Node {
	if b.D.Kind != server.KindCluster {
		return b.D.Nodes()[0]
	}
	primary, _ := b.pair(name)
	return primary
}

// pair returns the primary of a name's slot in a Cluster, and its replica, as started.
func (b *bed) pair(name string) (primary, replica *server.Node) {
	nodes, i := b.D.Nodes(), int(cluster.Slot(prefix+name))*3/16384
	return nodes[i], nodes[i+3]
}

// A primary is killed. What was replicated is still held, the line goes on in its order, and
// workers on a short lease never hold one lock at once by their own judgement: an unreplicated lock
// ends here before the failover is over, because the lease is shorter than that. (With a longer one
// two holders are possible; see the safety levels.)
func TestAPrimaryIsKilled(t *testing.T) {
	for name, start := range map[string]func(testing.TB, ...server.Option) *server.Deployment{
		"sentinel": server.Sentinel, "cluster": server.Cluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failover(t, lay(t, start(t, server.Owned())))
		})
	}
}

func failover(t *testing.T, b *bed) {
	holder, first, second := b.open(testbed.Long), b.open(testbed.Long), b.open(testbed.Long)
	l := b.Take(holder, "{x}held")
	waiting := []<-chan testbed.Outcome{b.Acquire(b.Ctx, first, "{x}held")}
	b.Line(holder, "{x}held", 1)
	waiting = append(waiting, b.Acquire(b.Ctx, second, "{x}held"))
	b.Line(holder, "{x}held", 2)

	const lease = 800 * time.Millisecond
	h := newHistory(b)
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for i := range 3 {
		c := b.open(lease)
		workers.Go(func() { h.work(c, "{x}hot", i, stop) })
	}
	b.Eventually("some turns", func() bool { return h.turns() >= 10 })
	primary := b.owning("{x}held")
	b.replicated(primary)
	killed := time.Now()
	require.NoError(t, primary.Kill())
	before := h.turns()
	b.Eventually("turns after the failover", func() bool { return h.turns() >= before+10 })
	t.Logf("10 turns %v after the kill", time.Since(killed))
	close(stop)
	workers.Wait()
	h.check(t)
	t.Logf("lease %v, longest turn %v, longest time without one %v", lease, h.longest(), h.gap())

	require.NoError(t, l.Context().Err(), "it was replicated")
	b.Eventually("renewed on the new primary", func() bool { return l.Renew(b.Ctx) == nil })
	t.Logf("renewed on the new primary %v after the kill", time.Since(killed))
	b.Line(holder, "{x}held", 2)
	t.Logf("line of 2 %v after the kill", time.Since(killed))
	b.Release(l)
	b.served(t, waiting, l.Fence(), killed)
	b.Eventually("nothing is left", func() bool {
		info, err := holder.Inspect(b.Ctx, "{x}held")
		return err == nil && !info.Held && info.Waiters == 0
	})
}

// served asserts that both waiters get the lock, one after the other. A waiter that was not
// subscribed again in time is served later, so either may be the first.
func (b *bed) served(t *testing.T, waiting []<-chan testbed.Outcome, fence int64, killed time.Time) {
	t.Helper()
	for range waiting {
		var o testbed.Outcome
		select {
		case o = <-waiting[0]:
		case o = <-waiting[1]:
		case <-time.After(testbed.Within):
		}
		require.NoError(t, o.Err)
		require.NotNil(t, o.Lock, "nobody got it")
		require.Greater(t, o.Lock.Fence(), fence)
		fence = o.Lock.Fence()
		t.Logf("handed over %v after the kill", o.At.Sub(killed))
		b.Release(o.Lock)
	}
}
