package queue

import (
	"context"
	"errors"
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
	keys    map[string]*entry
	refused map[string]time.Duration // when a key was refused last
}

// New returns Queues with nobody in them.
func New(cfg Config) *Queues {
	q := &Queues{Config: cfg, born: time.Now(), seed: maphash.MakeSeed()}
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

func (r *Request) kind() Kind {
	if r.Try {
		return Try
	}
	return Enter
}

// The ends of a wait. ErrBusy, ErrUnreachable and ErrInvalid are those of fcall.
var (
	ErrTimeout = errors.New("the wait is over")
	ErrClosed  = errors.New("closing")
	errLate    = errors.New("its turn would come too late")
)

// enter returns the entry of the key, with its mutex held.
func (q *Queues) enter(r *Request) *entry {
	if r.Owner != "" || r.alone { // a queue of one, in no map
		e := newEntry(q, r)
		e.mu = &sync.Mutex{}
		e.mu.Lock()
		return e
	}
	s := q.shard(r.Key)
	s.mu.Lock()
	e := s.keys[r.Key]
	if e == nil {
		e = newEntry(q, r)
		e.mu, e.shard = &s.mu, s
		s.keys[r.Key] = e
	}
	return e
}

// decided is the end of a waiter's call, which it waits for. e.mu is held, and not any more when it
// returns.
func (q *Queues) decided(ctx context.Context, e *entry, w *waiter, r Request) (*holding.Holder, Waited, error) {
	if !w.done {
		e.await(ctx, w)
	}
	t, waited, own, err := w.holder, w.waited(), w.own, w.err
	e.mu.Unlock()
	if own {
		r.alone = true
		return q.Acquire(ctx, r)
	}
	return t, waited, err
}

// await blocks until the waiter's call is decided. e.mu is held, but not while it blocks.
func (e *entry) await(ctx context.Context, w *waiter) {
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
		e.step(Event{Kind: Close})
	}
}

// Release passes a lock on inside the process, or gives it back: then it blocks until the server has
// answered, ctx ends, or the lease is over. Its last Ref has left.
func (q *Queues) Release(ctx context.Context, t *holding.Holder, now time.Time) (passed bool, err error) {
	l := q.leave(t, Release, now)
	if l.back == nil {
		return true, nil
	}
	return false, q.Keeper.Release(ctx, l.back, l.last, l.ride)
}

// GiveUp is Release in the background, of a lock whose work was ended.
func (q *Queues) GiveUp(t *holding.Holder) {
	if l := q.leave(t, Lost, time.Now()); l.back != nil {
		q.Keeper.GiveUp(l.back, l.last)
	}
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
		return
	}
	switch l := q.leave(t, Decline, time.Now()); {
	case l.back == nil:
	case l.last < l.back.First:
		q.Keeper.Withdraw(l.back)
	default: // others of this process have worked under it
		q.Keeper.GiveUp(l.back, l.last)
	}
}

// left is what is left to do of a holder that has left.
type left struct {
	back *holding.Holding // is to be given back; nil: it was passed on
	last int64            // the last token that was used
	ride *keeper.Ride     // the wait of those behind it; nil: the agent makes it
}

// leave takes a holder away from the queue of its key, if that has it.
func (q *Queues) leave(t *holding.Holder, kind Kind, now time.Time) (l left) {
	h := t.Holding
	if l = (left{back: h, last: t.Fence}); kind == Decline {
		l.last--
	}
	s := q.shard(h.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.keys[h.Key]
	if e == nil || e.h != h {
		return l
	}
	if kind == Release && e.machine.Freed(h.Owner, t.Fence) {
		delete(s.keys, h.Key)
		return l
	}
	over := kind == Lost
	if kind != Lost && e.machine.Waiting() > 0 {
		over = now.Sub(h.Since) > passSlice || !h.Passable(e.pace(h, t, now))
	}
	e.step(Event{Kind: kind, Owner: h.Owner, Token: t.Fence, Over: over})
	if e.h == h {
		return left{}
	}
	if kind == Release {
		l.ride = e.ride()
	}
	return l
}

// pace waits until the next token of a run may be used: a microsecond at most. The clock of a test may
// stand still.
func (e *entry) pace(h *holding.Holding, t *holding.Holder, now time.Time) time.Time {
	at := h.Since.Add(time.Duration(t.Fence+1-h.First) * time.Microsecond)
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
		e.step(Event{Kind: Lost, Owner: h.Owner})
	}
}

// Holder is who of this process has the lock of a key; nil if nobody has.
func (q *Queues) Holder(key string) *holding.Holder {
	s := q.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.keys[key]; e != nil && e.h != nil {
		return e.h.Holder()
	}
	return nil
}

// Waiting is how many goroutines of this process wait for a key, and whether one of them asks, or
// holds it.
func (q *Queues) Waiting(key string) (waiting int, led bool) {
	s := q.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.keys[key]
	if e == nil {
		return 0, false
	}
	return e.machine.Waiting(), true
}
