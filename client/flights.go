package client

import (
	"context"
	"errors"
	"math/bits"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/inbox"
	"github.com/holdfast-go/holdfast/client/internal/quorum"
)

const (
	batchSize   = 256 // locks of one pipeline
	laneFlights = 8   // pipelines of a lane under way at once
	slotBits    = 10  // Cluster: neighbouring slots are mostly on one node, and share a lane
)

// errand is what a lock has to send: a renewal, a look, or a giving back.
type errand interface {
	slot() uint16
	length() time.Duration // of the lease
	copies() fcall.Copies  // that its answer needs
	pack(p pipeline)
	// ours is false if the server says that the lock is another's
	answered(sent time.Time, o fcall.Outcome) (ours bool)
	// called after that, when what was published before has been heard
	taken()
}

// flights send what keepalive finds due, in pipelines of their own goroutines. Locks of one lane
// share pipelines: those of neighbouring slots, so that a node that is stalled does not hold up the
// others, and of leases of about one length, because that sets how long a pipeline may take.
type flights struct {
	calls   server
	inbox   *inbox.Inbox
	journal *journal

	mu     sync.Mutex
	lanes  map[lane]*queue
	done   sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
}

type lane struct {
	slots  uint16
	class  int
	copies fcall.Copies
	node   string // that must answer for all of it
}

type queue struct {
	errands []errand
	flying  int
}

func newFlights(calls server, in *inbox.Inbox, j *journal) *flights {
	f := &flights{calls: calls, inbox: in, journal: j, lanes: map[lane]*queue{}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// add queues an errand; launch sends it.
func (f *flights) add(e errand) {
	at := lane{slots: e.slot() >> slotBits, class: bits.Len64(uint64(e.length() / time.Millisecond)), copies: e.copies()}
	if at.copies.Replicas > 0 {
		at.node = f.calls.Home(e.slot())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.lanes[at]
	if q == nil {
		q = &queue{}
		f.lanes[at] = q
	}
	q.errands = append(q.errands, e)
}

// launch begins as many pipelines as may fly.
func (f *flights) launch() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, q := range f.lanes {
		for f.ctx.Err() == nil && len(q.errands) > 0 && q.flying < laneFlights {
			n := min(len(q.errands), batchSize)
			batch := q.errands[:n:n]
			if q.errands = q.errands[n:]; len(q.errands) == 0 {
				q.errands = nil
			}
			q.flying++
			f.done.Add(1)
			go f.fly(at, q, batch)
		}
	}
}

func (f *flights) fly(at lane, q *queue, batch []errand) {
	defer f.done.Done()
	f.deliver(batch, at.copies)
	f.mu.Lock()
	if q.flying--; q.flying == 0 && len(q.errands) == 0 {
		delete(f.lanes, at)
	}
	f.mu.Unlock()
	f.launch()
}

func (f *flights) close() {
	f.mu.Lock()
	f.cancel()
	f.mu.Unlock()
	f.done.Wait()
}

// deliver is one pipeline. It waits for a sixth of the shortest lease at most: what it did not hear
// of by then is asked again.
func (f *flights) deliver(batch []errand, copies fcall.Copies) {
	limit := batch[0].length()
	for _, e := range batch {
		limit = min(limit, e.length())
	}
	sent := time.Now()
	ctx, cancel := context.WithTimeout(f.ctx, limit/6)
	defer cancel()
	outcomes := f.send(ctx, batch, copies)
	if f.calls.Heal(ctx, outcomes[0].Err) {
		outcomes = f.send(ctx, batch, copies)
	}
	var gone []errand
	for i, e := range batch {
		if err := outcomes[i].Err; err != nil && f.ctx.Err() == nil && !errors.Is(err, quorum.ErrOwing) {
			f.journal.failed(len(batch), err)
		}
		if !e.answered(sent, outcomes[i]) {
			gone = append(gone, e)
		}
	}
	f.taken(gone)
}

func (f *flights) send(ctx context.Context, batch []errand, copies fcall.Copies) []fcall.Outcome {
	p := f.calls.batch(len(batch), copies)
	for _, e := range batch {
		e.pack(p)
	}
	return p.Send(ctx)
}

// taken ends locks that the server says are another's. If one was broken, that was published with
// its reason before the server said so, but it comes through another goroutine, perhaps another
// connection: it is waited for.
func (f *flights) taken(gone []errand) {
	if len(gone) == 0 {
		return
	}
	slots := make([]uint16, len(gone))
	for i, e := range gone {
		slots[i] = e.slot()
	}
	f.inbox.CatchUp(f.ctx, slots)
	for _, e := range gone {
		e.taken()
	}
}
