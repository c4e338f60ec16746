// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"math/bits"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// sending is a call on its way to a pipeline: of a lock's lease, or a Ride.
type sending struct {
	holding *holding.Holding
	action  lease.Action
	ride    *Ride
	// of the lease; what is undone is not urgent, nor is a question of one who waits
	length time.Duration
	apart  bool // overdue: the node of a neighbouring slot can be silent
}

// Pipelines send what is due, each in a goroutine of its own. What is of one lane shares pipelines: locks of
// neighbouring slots, so that a node that is stalled does not hold up the others, and of leases of about
// one length, because that sets how long a pipeline may take. What is overdue, asked or undone shares them with its
// own slot alone.

type lane struct {
	slots    uint16
	class    int
	replicas int
	held     bool // about locks that are held
}

type waiting struct {
	sendings []sending
	flying   int
}

// Ask makes a call in the background, in one pipeline with others of its slot. It does not block.
func (k *Keeper) Ask(r *Ride) {
	k.send(r.Call.Key, r.Call.Replicas, true, sending{ride: r, length: max(r.Length, 6*(pipeWait+r.Call.ReplicaWait))})
}

// send queues a sending about a key; the scheduler sends it, if not now.
func (k *Keeper) send(key string, replicas int, now bool, s sending) {
	at := lane{k.Backend.Slot(key) >> slotBits, bits.Len64(uint64(s.length / time.Millisecond)), replicas, s.holding != nil}
	if s.apart || s.ride != nil { // whose late answer nobody would hear of
		at.slots = ^k.Backend.Slot(key) // none of the others
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.lanes[at]
	if w == nil {
		w = &waiting{}
		k.lanes[at] = w
	}
	if w.sendings = append(w.sendings, s); now {
		k.begin(at, w)
	}
}

// begin begins as many pipelines of a lane as may fly. k.mu is held.
func (k *Keeper) begin(at lane, w *waiting) {
	for k.ctx.Err() == nil && len(w.sendings) > 0 && w.flying < laneFlights {
		n := min(len(w.sendings), batchSize)
		batch := w.sendings[:n:n]
		w.sendings = w.sendings[n:]
		w.flying++
		k.done.Go(func() { k.fly(at, w, batch) })
	}
}

func (k *Keeper) fly(at lane, w *waiting, batch []sending) {
	k.deliver(at, batch)
	k.mu.Lock()
	defer k.mu.Unlock()
	w.flying--
	if k.begin(at, w); w.flying == 0 {
		delete(k.lanes, at)
	}
}

// deliver is one pipeline. It waits for a sixth of the shortest lease at most: what was not answered
// by then is asked again. That a lock was renewed counts also when it is heard of later, or those of a server
// that is slow would all be lost.
func (k *Keeper) deliver(at lane, batch []sending) {
	limit := batch[0].length
	calls := make([]fcall.Call, len(batch))
	for i, s := range batch {
		limit, calls[i] = min(limit, s.length), s.call(k)
	}
	patience := limit / 6
	if !at.held {
		limit = patience
	}
	ctx, cancel := context.WithTimeout(k.ctx, limit)
	sent, answers := time.Now(), make(chan []fcall.Outcome, 1)
	k.done.Go(func() {
		defer cancel()
		answers <- k.Backend.Send(ctx, calls)
	})
	var outcomes []fcall.Outcome
	select {
	case outcomes = <-answers:
	case <-time.After(patience):
		outcomes = slices.Repeat([]fcall.Outcome{{Err: errLate}}, len(batch))
		k.done.Go(func() {
			for i, o := range <-answers {
				batch[i].late(k, sent, o)
			}
		})
	}
	for i, s := range batch {
		if s.failed(outcomes[i]) && k.ctx.Err() == nil {
			k.OnUnanswered(len(batch), outcomes[i].Err)
		}
		s.answered(k, sent, outcomes[i])
	}
}
