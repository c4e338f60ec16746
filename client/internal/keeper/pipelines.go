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

// sending is a call on its way to a pipeline: of a lock's lease, or an Undo.
type sending struct {
	holding *holding.Holding
	action  lease.Action
	undo    *Undo
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

// length is of the lease; what is undone is not urgent.
func (s sending) length() time.Duration {
	if s.holding == nil {
		return 6 * undoWait
	}
	seen := s.holding.Seen()
	return seen.Length()
}

// add queues a sending; launch sends it.
func (p *pipelines) add(k *Keeper, s sending) {
	at := lane{class: bits.Len64(uint64(s.length() / time.Millisecond))}
	if s.holding != nil {
		at.slots, at.replicas = k.Slot(s.holding.Key)>>slotBits, s.holding.Terms.Replicas
	} else {
		at.slots = k.Slot(s.undo.Key) >> slotBits
	}
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
