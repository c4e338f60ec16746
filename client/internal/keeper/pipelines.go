// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"math/bits"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// sending is a call on its way to a pipeline: of a lock's lease, an Undo, or a Ride.
type sending struct {
	holding *holding.Holding
	action  lease.Action
	undo    *Undo
	ride    *Ride
}

// pipelines send what is due, each in a goroutine of its own. Locks of one lane share pipelines:
// those of neighbouring slots, so that a node that is stalled does not hold up the others, and of
// leases of about one length, because that sets how long a pipeline may take.
type pipelines struct {
	mu     sync.Mutex
	lanes  map[lane]*waiting
	closed bool
	done   sync.WaitGroup
}

type lane struct {
	slots    uint16
	class    int
	replicas int
}

type waiting struct {
	sendings []sending
	flying   int
}

// length is of the lease; what is undone is not urgent, nor is a question of one who waits.
func (s sending) length() time.Duration {
	switch {
	case s.undo != nil:
		return 6 * undoWait
	case s.ride != nil:
		return max(s.ride.Length, 6*(undoWait+s.ride.Call.ReplicaWait))
	}
	seen := s.holding.Seen()
	return seen.Length()
}

// about is whose lane it takes: of a key, and of those that wait for replicas.
func (s sending) about() (key string, replicas int) {
	switch {
	case s.undo != nil:
		return s.undo.Key, 0
	case s.ride != nil:
		return s.ride.Call.Key, s.ride.Call.Replicas
	}
	return s.holding.Key, s.holding.Terms.Replicas
}

// Ask makes a call in the background, in one pipeline with others. It does not block.
func (k *Keeper) Ask(r *Ride) {
	k.pipelines.add(k, sending{ride: r})
	k.pipelines.launch(k)
}

// add queues a sending; launch sends it.
func (p *pipelines) add(k *Keeper, s sending) {
	key, replicas := s.about()
	at := lane{k.Slot(key) >> slotBits, bits.Len64(uint64(s.length() / time.Millisecond)), replicas}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.lanes[at]
	if w == nil {
		w = &waiting{}
		p.lanes[at] = w
	}
	w.sendings = append(w.sendings, s)
}

// launch begins as many pipelines as may fly.
func (p *pipelines) launch(k *Keeper) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, w := range p.lanes {
		for !p.closed && len(w.sendings) > 0 && w.flying < laneFlights {
			n := min(len(w.sendings), batchSize)
			batch := w.sendings[:n:n]
			if w.sendings = w.sendings[n:]; len(w.sendings) == 0 {
				w.sendings = nil
			}
			w.flying++
			p.done.Add(1)
			go p.fly(k, at, w, batch)
		}
	}
}

func (p *pipelines) fly(k *Keeper, at lane, w *waiting, batch []sending) {
	defer p.done.Done()
	k.deliver(batch)
	p.mu.Lock()
	if w.flying--; w.flying == 0 && len(w.sendings) == 0 {
		delete(p.lanes, at)
	}
	p.mu.Unlock()
	p.launch(k)
}

func (p *pipelines) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.done.Wait()
}

// deliver is one pipeline. It waits for a sixth of the shortest lease at most: what was not answered
// by then is asked again.
func (k *Keeper) deliver(batch []sending) {
	limit := batch[0].length()
	calls := make([]fcall.Call, len(batch))
	for i, s := range batch {
		limit, calls[i] = min(limit, s.length()), s.call(k)
	}
	ctx, cancel := context.WithTimeout(k.ctx, limit/6)
	defer cancel()
	sent := time.Now()
	outcomes := k.Backend.Send(ctx, calls)
	for i, s := range batch {
		if s.failed(outcomes[i]) && k.ctx.Err() == nil {
			k.OnUnanswered(len(batch), outcomes[i].Err)
		}
		s.answered(k, sent, outcomes[i])
	}
}
