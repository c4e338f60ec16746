// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/inbox"
	"github.com/holdfast-go/holdfast/client/internal/keeper"
)

// Config is what the queues of a client need. All of it is required but Inbox.
type Config struct {
	Backend   fcall.Backend
	Keeper    *keeper.Keeper
	Inbox     *inbox.Inbox              // nil: there are no messages, and waiters poll
	Owner     func(label string) string // a fresh owner string
	HoldID    func() string             // a fresh id of a hold
	Jitter    func(time.Duration) time.Duration
	Closing   context.Context
	LostError func(h *holding.Holder, why error, reason string) error
	Answered  func() // the server has answered to who wants a lock
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

	refusals [mostRefused]atomic.Int64 // see refusal
}

type shard struct {
	mu   sync.Mutex
	keys map[string]*entry // nil: of an entry of its own
}

// New returns Queues with nobody in them.
func New(cfg Config) *Queues {
	q := &Queues{Config: cfg, born: time.Now().Add(-1), seed: maphash.MakeSeed()}
	for i := range q.shards {
		q.shards[i].keys = map[string]*entry{}
	}
	return q
}

func (q *Queues) shard(key string) *shard { return &q.shards[maphash.String(q.seed, key)%shards] }

// refusal is when e's key was refused last, as now; or another one of its hash, which costs a free lock the
// longer way.
func (e *entry) refusal() *atomic.Int64 {
	return &e.refusals[maphash.String(e.seed, e.key)%mostRefused]
}

// now is the time as the machines take it.
func (q *Queues) now() time.Duration { return time.Since(q.born) }

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
