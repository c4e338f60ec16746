package queue

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/inbox"
	"github.com/holdfast-go/holdfast/client/internal/keeper"
	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// Config is what the queues of a client need. All of it is required but Inbox.
type Config struct {
	Backend   fcall.Backend
	Keeper    *keeper.Keeper
	Inbox     *inbox.Inbox // nil: there are no messages, and waiters poll
	Slot      func(key string) uint16
	Owner     func(label string) string // a fresh owner string
	HoldID    func() string             // a fresh id of a hold
	Jitter    func(time.Duration) time.Duration
	Closing   context.Context
	LostError func(h *holding.Holder, why error, reason string) error
	Unheard   func() // the server finds no subscriber on our channel, time and again
}

// Queues are the queues of all keys that are wanted or held here. They are safe for concurrent use.
//
// The mutex of a shard comes before that of the keeper, and that one before those of holdings. The
// inbox and the keeper call back without their own.
type Queues struct {
	Config
	born   time.Time
	seed   maphash.Seed
	shards [shards]shard
}

type shard struct {
	mu      sync.Mutex
	keys    map[string]*entry        // nil: of an entry of its own
	refused map[string]time.Duration // when a key was refused last
}

// New returns Queues with nobody in them.
func New(cfg Config) *Queues {
	q := &Queues{Config: cfg, born: time.Now().Add(-1), seed: maphash.MakeSeed()}
	for i := range q.shards {
		q.shards[i].keys, q.shards[i].refused = map[string]*entry{}, map[string]time.Duration{}
	}
	return q
}

func (q *Queues) shard(key string) *shard { return &q.shards[maphash.String(q.seed, key)%shards] }

// now is the time as the machines take it.
func (q *Queues) now() time.Duration { return time.Since(q.born) }

// Request is what one call wants.
type Request struct {
	Name, Key   string
	Terms       *lease.Terms
	Owner       string // of the caller's choice: the lock is joinable; "": a fresh one
	Epoch       int64  // goes with the Holding
	Try         bool   // one call, and no place in line
	Fresh       bool   // Try: ask the server, whatever is known here
	Tracked     bool   // Try: the server tells when the answer changes
	GiveUpEarly bool   // do not wait for longer than the context may

	alone bool // a try beside the queue: a call of its own, by an owner of its own
}

// Waited is what a call knew when it ended.
type Waited struct {
	Asked    bool         // the server was asked for this call
	Position int          // in the server's line; 0: not there, or behind another goroutine
	Last     *fcall.Reply // who had the lock when last heard; nil: never heard
	Behind   *fcall.Reply // who had it, as the server said while this call waited
}

// Acquire takes the lock of a key, or waits for it until ctx ends. Where nobody else of this process
// has or wants the key, it is one call of its own. Else the caller stands in the queue.
//
// Whoever gets a Holder takes it up with Add, or declines it.
func (q *Queues) Acquire(ctx context.Context, r Request) (*holding.Holder, Waited, error) {
	e := q.enter(&r)
	w, now := e.waiter(ctx, &r), time.Now()
	e.step(now, Event{Kind: Enter, Waiter: w})
	if e.due {
		e.due, w.Asked = false, true
		e.make(ctx, e.machine.call, r.Tracked, now)
	}
	if !w.done {
		e.await(ctx, w)
	}
	holder, waited, own, err := w.holder, w.Waited, w.own, w.err
	e.mu.Unlock()
	if own {
		r.alone = true
		return q.Acquire(ctx, r)
	}
	return holder, waited, err
}

// enter returns the queue of the key, with its mutex held.
func (q *Queues) enter(r *Request) *entry {
	var s *shard
	if r.Owner == "" && !r.alone {
		s = q.shard(r.Key)
	} else {
		s = &shard{}
	}
	s.mu.Lock()
	e := s.keys[r.Key]
	if e == nil {
		e = &entry{Queues: q, shard: s, key: r.Key, fixed: r.Owner}
		if e.machine.Fresh = e.fresh; s.keys != nil {
			s.keys[r.Key] = e
		}
	}
	return e
}

// waiter returns a place for the caller's goroutine. e.mu is held.
func (e *entry) waiter(ctx context.Context, r *Request) *Waiter {
	w := &e.first
	if e.machine.State() != Absent {
		w = &Waiter{}
	}
	if w.Request = *r; !r.Try && e.Inbox != nil { // does a message tell of the lock, that was refused just now?
		at, refused := e.refused[e.key]
		w.Hot = refused && e.now()-at < memory && e.Inbox.Channel(e.Slot(e.key)) != ""
	}
	if at, ok := ctx.Deadline(); ok {
		w.Until = max(1, at.Sub(e.born))
	}
	return w
}

// await blocks until the waiter's call is decided. e.mu is held, but not while it blocks.
func (e *entry) await(ctx context.Context, w *Waiter) {
	w.turn = make(chan struct{})
	e.mu.Unlock()
	ended := false
	select {
	case <-w.turn:
	case <-ctx.Done():
		ended = true
	case <-e.Closing.Done():
	}
	e.mu.Lock()
	switch {
	case w.done:
	case ended:
		e.end(ctx, w)
	default:
		e.step(time.Now(), Event{Kind: Close})
	}
}

// Release passes a lock on inside the process, or gives it back: then it blocks until the server has
// answered, ctx ends, or the lease is over. Its last Ref has left.
func (q *Queues) Release(ctx context.Context, t *holding.Holder, now time.Time) (passed bool, err error) {
	passed, ride := q.leave(t, now, true)
	if passed {
		return true, nil
	}
	return false, q.Keeper.Release(ctx, t.Holding, t.Fence, ride)
}

// GiveUp is Release in the background, of a lock whose work was ended.
func (q *Queues) GiveUp(t *holding.Holder) {
	q.Lost(t.Holding)
	q.Keeper.GiveUp(t.Holding, t.Fence)
}

// Decline gives a lock on that nobody took up.
func (q *Queues) Decline(t *holding.Holder) { q.Withdraw(t, q.Keeper.Leave(t, nil, time.Now())) }

// Withdraw gives a lock on that nobody worked under, and whose last Ref has left.
func (q *Queues) Withdraw(t *holding.Holder, left holding.Left) {
	if !left.Last {
		return
	}
	if left.Cause != nil {
		q.GiveUp(t)
	} else if passed, _ := q.leave(t, time.Now(), false); passed {
		return
	} else if t.Fence == t.First {
		q.Keeper.Withdraw(t.Holding)
	} else { // others of this process have worked under it
		q.Keeper.GiveUp(t.Holding, t.Fence-1)
	}
}

// leave takes a holder away from the queue of its key, if that has it: the lock was passed on, or is to be
// given back, together with ride if rides.
func (q *Queues) leave(t *holding.Holder, now time.Time, rides bool) (passed bool, ride *keeper.Ride) {
	h, s := t.Holding, q.shard(t.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.keys[h.Key]
	if e == nil || e.h != h {
		return false, nil
	}
	over := e.machine.Waiting() > 0 && (now.Sub(h.Since) > passSlice || !h.Passable(pace(t, now)))
	e.step(now, Event{Kind: Release, Owner: h.Owner, Token: t.Fence, Over: over})
	if passed = e.h == h; rides && !passed {
		return false, e.ride()
	}
	e.launch()
	return passed, nil
}

// pace waits until the next token of a run may be used: a microsecond at most. The clock of a test may
// stand still.
func pace(t *holding.Holder, now time.Time) time.Time {
	at := t.Since.Add(time.Duration(t.Fence+1-t.First) * time.Microsecond)
	for range 200 {
		if !now.Before(at) {
			break
		}
		now = time.Now()
	}
	return now
}

// Lost tells the queue of a lock that is not ours any more.
func (q *Queues) Lost(h *holding.Holding) {
	s := q.shard(h.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.keys[h.Key]; e != nil && e.h == h {
		e.step(time.Now(), Event{Kind: Release, Owner: h.Owner, Token: h.Holder().Fence, Over: true})
		e.launch()
	}
}

// Line is who of this process has the lock of a key, or nil, how many of its goroutines wait for it, and
// whether one of them has it or asks.
func (q *Queues) Line(key string) (holder *holding.Holder, waiting int, led bool) {
	s := q.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.keys[key]
	if e == nil {
		return nil, 0, false
	}
	if e.h != nil {
		holder = e.h.Holder()
	}
	return holder, e.machine.Waiting(), true
}
