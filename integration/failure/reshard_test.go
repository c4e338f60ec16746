package failure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// A slot that moves has five locks that are held, one with a line, and one that comes and goes.
const (
	heldInSlot    = 5
	waitersOfLine = 3
	loaders       = 4
)

// Slots move to another primary and back, under locks that are held and renewed, lines of waiters, and
// locks that come and go. No lock is lost, no call fails, and everybody in line has a turn. Who waits
// can lose places, and only at a hand-off while the slot moves or before the waiter has subscribed
// at its new place. HOLDFAST_SLOTS is how many slots move (default 60).
func TestReshardingUnderLoad(t *testing.T) {
	t.Parallel()
	count := 60
	if text := os.Getenv("HOLDFAST_SLOTS"); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		require.NoError(t, err, "HOLDFAST_SLOTS")
	}
	server.Each(t, func(t *testing.T, f server.Flavour) {
		b := lay(t, server.Cluster(t, server.Owned(), server.WithFlavour(f)))
		r := reshard{bed: b, mover: newMover(b), tags: tags(count)}
		r.run(t)
	})
}

type reshard struct {
	*bed
	mover *mover
	tags  map[uint16]string // of the slots that move
}

// tags returns hash tags for as many slots, from all over the Cluster.
func tags(count int) map[uint16]string {
	found := map[uint16]string{}
	for i := 0; len(found) < count; i++ {
		tag := "{" + strconv.Itoa(i) + "}"
		found[cluster.Slot(tag)] = tag
	}
	return found
}

func (r *reshard) run(t *testing.T) {
	var cancel context.CancelFunc
	// many slots take longer than other tests
	r.Ctx, cancel = context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(len(r.tags))*time.Second)
	defer cancel()
	worst := late()
	slots := make([]uint16, 0, len(r.tags))
	for slot := range r.tags {
		slots = append(slots, slot)
	}
	slices.Sort(slots)

	cfg := client.Config{Lease: 10 * time.Second, RenewEvery: time.Second}
	var holders, waiters, busy []*client.Client
	for range loaders {
		holders = append(holders, r.Connect(r.D.ClientOption(), cfg))
		busy = append(busy, r.Connect(r.D.ClientOption(), cfg))
	}
	for range waitersOfLine {
		waiters = append(waiters, r.Connect(r.D.ClientOption(), cfg))
	}
	var held []*client.Lock
	var lined []string
	for _, slot := range slots {
		for i := range heldInSlot {
			held = append(held, r.Take(holders[i%loaders], fmt.Sprintf("%sheld %d", r.tags[slot], i)))
		}
		lined = append(lined, r.tags[slot]+"line")
	}
	lines := r.line(holders[0], waiters, lined)
	load := r.load(busy, func(worker, turn int) string {
		return fmt.Sprintf("%sload %d", r.tags[slots[turn%len(slots)]], worker)
	})

	// Half of the lines move on while the slots do, at any moment of it; the others right after that,
	// or when their waiters have subscribed at the new place.
	var during, after, settled []string
	for i, name := range lined {
		switch i % 4 {
		case 0:
			after = append(after, name)
		case 1:
			settled = append(settled, name)
		default:
			during = append(during, name)
		}
	}
	began := time.Now()
	released := make(chan error, 1)
	moves := r.thereAndBack(slots)
	go func() { released <- r.releaseMeanwhile(lines, during, moves) }()
	for _, m := range moves {
		r.mover.move(m.slot, m.from, m.to)
		r.mover.tell(m.slot, m.from, m.to)
		close(m.done)
	}
	t.Logf("%d moves of %d slots with %d keys in %v", len(moves), len(slots), r.mover.keys, time.Since(began))
	require.NoError(t, testbed.Got(t, released))
	for _, name := range after {
		require.NoError(t, lines.release(name))
	}
	for _, name := range settled {
		r.subscribed(t, r.owning(name), name)
		require.NoError(t, lines.release(name))
	}
	lines.served.Wait()
	lines.late = worst()
	t.Logf("plain timers were late by up to %v", lines.late)
	load.check(t)
	t.Logf("hand-offs while slots move: %+v", lines.check(t, during))
	t.Logf("hand-offs right afterwards: %+v", lines.check(t, after))
	calm := lines.check(t, settled)
	t.Logf("hand-offs after all have subscribed again: %+v", calm)
	assert.Zero(t, calm.lost)
	for _, l := range held {
		assert.NoError(t, l.Context().Err(), "%v", context.Cause(l.Context()))
		assert.NoError(t, l.Release(r.Ctx))
	}
	t.Logf("%d locks were held for %v, lease %v, renewed every %v", len(held), time.Since(began), cfg.Lease, cfg.RenewEvery)
}

// step is one slot's move.
type step struct {
	slot     uint16
	from, to *server.Node
	done     chan struct{}
}

// thereAndBack is the moves of all slots to the next primary, and then of all back.
func (r *reshard) thereAndBack(slots []uint16) (moves []step) {
	nodes := r.mover.primaries
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
func (r *reshard) releaseMeanwhile(lines *lines, names []string, moves []step) error {
	for _, name := range names {
		slot := cluster.Slot(prefix + name)
		i := slices.IndexFunc(moves, func(m step) bool { return m.slot == slot })
		if i > 0 {
			testbed.Got(r.TB, moves[i-1].done)
		}
		<-time.After(rand.N(10 * time.Millisecond)) // any moment of the move
		if err := lines.release(name); err != nil {
			return err
		}
	}
	return nil
}
