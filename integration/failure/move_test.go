package failure

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// A slot moves, or its primary changes in good order, while a holder renews and others wait:
// nothing is lost, and the line keeps its order once the waiters have subscribed at the new place.
func TestASlotMovesInGoodOrder(t *testing.T) {
	t.Parallel()
	b := lay(t, server.Cluster(t, server.Owned()))
	t.Run("failover", func(t *testing.T) {
		_, replica := b.pair("a")
		b.TB = t
		b.moved(t, "a", replica, func() { require.NoError(t, replica.Failover(b.Ctx)) })
	})
	t.Run("reshard", func(t *testing.T) {
		b.TB = t
		const name = "c" // of another primary than the first test's
		source := b.owning(name)
		require.NotEqual(t, b.owning("a"), source)
		target := b.D.Nodes()[(int(cluster.Slot(prefix+name))*3/16384+1)%3]
		if target == b.owning("a") {
			target = b.D.Nodes()[(int(cluster.Slot(prefix+name))*3/16384+2)%3]
		}
		m := newMover(b)
		b.moved(t, name, target, func() { m.move(cluster.Slot(prefix+name), source, target) })
	})
}

// moved holds a lock with a line, moves it, and asserts that nothing changed.
func (b *bed) moved(t *testing.T, name string, to *server.Node, move func()) {
	t.Helper()
	// A failover by hand stops the primary's clients for up to five seconds.
	holder := b.Connect(b.D.ClientOption(), client.Config{Lease: 15 * time.Second, RenewEvery: 500 * time.Millisecond})
	l := b.Take(holder, name)
	var waiting []<-chan testbed.Outcome
	for i := range 3 {
		waiting = append(waiting, b.Acquire(b.Ctx, b.open(testbed.Long), name))
		b.Line(holder, name, i+1)
	}
	stop := b.busy(t, "{"+prefix+name+"}")
	move()
	for range 3 { // renewed at the new place
		last := l.Remaining()
		b.Eventually("a renewal", func() bool {
			now := l.Remaining()
			renewed := now > last
			last = now
			return renewed || l.Context().Err() != nil
		})
		require.NoError(t, l.Context().Err(), "%v", context.Cause(l.Context()))
	}
	stop()
	b.Line(holder, name, len(waiting))
	b.subscribed(t, to, name)
	fence := l.Fence()
	for i, w := range waiting {
		b.Release(l)
		l = b.Locked(w).Lock
		require.Greater(t, l.Fence(), fence, "number %d", i)
		fence = l.Fence()
	}
	b.Release(l)
}

// busy takes new locks of one name, all the time, until the returned func is called.
func (b *bed) busy(t *testing.T, name string) (stop func()) {
	t.Helper()
	c := b.open(testbed.Long)
	ctx, cancel := context.WithCancel(b.Ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		n, failed := 0, error(nil)
		for ctx.Err() == nil {
			err := c.Do(ctx, name, func(context.Context) error { n++; return nil }, client.WithMaxWait(5*time.Second))
			if err != nil && ctx.Err() == nil {
				failed = err
				select {
				case <-time.After(10 * time.Millisecond): // what a caller does: not at once again
				case <-ctx.Done():
				}
			}
		}
		t.Logf("%d locks taken in the meantime, last failure: %v", n, failed)
	}()
	return func() {
		cancel()
		testbed.Got(b.TB, done)
	}
}

// subscribed blocks until all who wait for the lock are subscribed at a node: who is not when its
// turn comes is skipped.
func (b *bed) subscribed(t *testing.T, node *server.Node, name string) {
	t.Helper()
	since := time.Now()
	last := "none"
	defer func() { t.Logf("after %v those who hear the waiters' channels: %s", time.Since(since), last) }()
	b.Eventually("the waiters have subscribed again", func() bool {
		lock, err := b.Do(name, "HGETALL").AsStrMap()
		if err != nil { // one of this test's own connections that ended
			return false
		}
		channels := b.channels(lock)
		m, err := node.Do(b.Ctx, append([]string{"PUBSUB", "SHARDNUMSUB"}, channels...)...)
		if err != nil {
			return false
		}
		listeners, err := m.AsIntMap()
		last = fmt.Sprint(listeners, err)
		for _, channel := range channels {
			if listeners[channel] == 0 {
				return false
			}
		}
		return err == nil
	})
}

// channels are those of the waiters in line, as functions/holdfast.lua packs them: four doubles, then the
// lengths of holds and channel, two bytes each, then holds, channel and owner.
func (b *bed) channels(lock map[string]string) (list []string) {
	b.TB.Helper()
	const lengths = 8 * 4
	for field, entry := range lock {
		if strings.HasPrefix(field, "w:") {
			require.Greater(b.TB, len(entry), lengths+4)
			short := func(at int) int { return int(entry[at]) | int(entry[at+1])<<8 }
			from := lengths + 4 + short(lengths)
			list = append(list, entry[from:from+short(lengths+2)])
		}
	}
	require.NotEmpty(b.TB, list)
	return list
}
