// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// patientNodes is for a Cluster that nobody strikes: on a busy machine its nodes would find each other dead.
var patientNodes = server.WithConfig("cluster-node-timeout", "15000")

// subscribed blocks until so many who wait for locks of a slot are subscribed at a node: who is not when
// its turn comes is skipped.
func (b *bed) subscribed(node *server.Node, slot uint16, waiters int) {
	b.TB.Helper()
	channels := prefix + "{" + cluster.TagFor(slot) + "}inbox:*"
	b.Eventually("the waiters have subscribed again", func() bool {
		m, err := node.Do(b.Ctx, "PUBSUB", "SHARDCHANNELS", channels)
		list, _ := m.AsStrSlice()
		return err == nil && len(list) >= waiters
	})
}

// Slots move to another primary and back, under locks that are held and renewed, lines of waiters, and
// locks that come and go: in each slot five that are held, one with a line, and one that comes and goes. No
// lock is lost, no call fails, and everybody in line has a turn. Who waits can lose places, and only at a
// hand-off while the slot moves or before the waiter has subscribed at its new place. HOLDFAST_SLOTS is how
// many slots move (default 20).
func TestReshardingUnderLoad(t *testing.T) {
	t.Parallel()
	count := times(t, "HOLDFAST_SLOTS", 20)
	server.Each(t, func(t *testing.T, f server.Flavour) {
		b := lay(t, server.Cluster(t, server.Owned(), server.WithFlavour(f), patientNodes))
		// many slots take longer than other tests
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(count)*time.Second)
		defer cancel()
		b.Ctx = ctx
		reshard(t, b, count)
	})
}

func reshard(t *testing.T, b *bed, count int) {
	slots, tags := tags(count)
	var held, lined []string
	for _, slot := range slots {
		for i := range 5 {
			held = append(held, fmt.Sprintf("%sheld %d", tags[slot], i))
		}
		lined = append(lined, tags[slot]+"line")
	}
	cfg := client.Config{Lease: 10 * time.Second, RenewEvery: time.Second}
	w := b.crewOf(b.connecting(b.D.ClientOption(), cfg), held, lined, func(worker, turn int) string {
		return fmt.Sprintf("%sload %d", tags[slots[turn%len(slots)]], worker)
	})

	// Half of the lines move on while the slots do, at any moment of it; the others when their waiters have
	// subscribed at the new place.
	var during, settled []string
	for i, name := range lined {
		if i%2 == 0 {
			during = append(during, name)
		} else {
			settled = append(settled, name)
		}
	}
	began := time.Now()
	moves := thereAndBack(b.D.Nodes(), slots)
	released := make(chan error, 1)
	go func() { released <- w.releaseMeanwhile(b.Ctx, during, moves) }()
	for _, s := range moves {
		patiently := func(move func(context.Context, uint16, *server.Node, *server.Node) error) {
			err := move(b.Ctx, s.slot, s.from, s.to)
			for ; isBusy(b.Ctx, err); err = move(b.Ctx, s.slot, s.from, s.to) {
				t.Logf("slot %d from %s to %s: asked again after %v", s.slot, s.from.Addr, s.to.Addr, err)
				<-time.After(100 * time.Millisecond)
			}
			require.NoError(t, err)
		}
		patiently(server.BeginMove)
		patiently(server.FinishMove)
		close(s.done)
	}
	t.Logf("%d moves of %d slots in %v", len(moves), len(slots), time.Since(began))
	require.NoError(t, testbed.Got(t, released))
	for _, name := range settled {
		b.subscribed(b.owning(name), cluster.Slot(prefix+name), waiters)
		require.NoError(t, w.release(name))
	}
	w.served.Wait()
	t.Logf("plain timers were late by up to %v", w.late())
	t.Logf("hand-offs while slots move: %+v", w.places(t, during))
	assert.Zero(t, w.places(t, settled).lost, "places lost after all have subscribed again")
	w.check(t, 0, nil)
}

// tags returns as many slots, from all over the Cluster, in order, and a hash tag of each.
func tags(count int) (slots []uint16, tags map[uint16]string) {
	tags = map[uint16]string{}
	for i := 0; len(tags) < count; i++ {
		tag := "{" + strconv.Itoa(i) + "}"
		if slot := cluster.Slot(tag); tags[slot] == "" {
			tags[slot] = tag
			slots = append(slots, slot)
		}
	}
	slices.Sort(slots)
	return slots, tags
}

// isBusy says whether a move may be made again: the replicas of a busy machine are behind, or a node has not
// answered within the time of a connection.
func isBusy(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil &&
		(strings.Contains(err.Error(), "NOREPLICAS") || errors.Is(err, context.DeadlineExceeded))
}

// step is one slot's move.
type step struct {
	slot     uint16
	from, to *server.Node
	done     chan struct{}
}

// thereAndBack is the moves of all slots to the next primary, and then of all back.
func thereAndBack(nodes []*server.Node, slots []uint16) (moves []step) {
	for _, slot := range slots {
		i := int(slot) * 3 / cluster.Slots
		moves = append(moves, step{slot, nodes[i], nodes[(i+1)%3], make(chan struct{})})
	}
	for _, there := range moves[:len(slots)] {
		moves = append(moves, step{there.slot, there.to, there.from, make(chan struct{})})
	}
	return moves
}

// releaseMeanwhile ends the first turn of each line at about the time at which its slot moves.
func (w *crew) releaseMeanwhile(ctx context.Context, names []string, moves []step) error {
	for _, name := range names {
		slot := cluster.Slot(prefix + name)
		i := slices.IndexFunc(moves, func(m step) bool { return m.slot == slot })
		if i > 0 {
			select {
			case <-moves[i-1].done:
			case <-ctx.Done(): // the moves have failed: that is what the test says
				return ctx.Err()
			}
		}
		<-time.After(rand.N(10 * time.Millisecond)) // any moment of the move
		if err := w.release(name); err != nil {
			return err
		}
	}
	return nil
}
