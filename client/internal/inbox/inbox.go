// Package inbox hears what the library publishes to this client: grants for owners that wait, and
// breaks of owners that hold. There is one channel for each hash slot that it is needed in, because
// a shard channel belongs to a slot, and one in all without Cluster. It knows owners and slots, and
// nothing of locks.
//
// Messages can be lost, so nothing may depend on them alone: Ready and Changed say when to ask the
// server.
package inbox

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/redis/rueidis"
)

const (
	// an unused subscription of a slot in Cluster is given up after this
	idleSlot = 30 * time.Second
	// holders make the client listen on at most this many slots; waiters on as many as they need
	maxKept = 256
)

// ErrClosed is returned after Close.
var ErrClosed = errors.New("inbox: closed")

// Config is what an Inbox needs. The functions are called from goroutines of rueidis: they must not
// block.
type Config struct {
	Redis   func(slot uint16) rueidis.Client // where a slot's messages come from; nil: not known yet
	Slotted bool                             // Cluster
	Prefix  string                           // of channels: one ACL pattern covers keys and channels
	ID      string                           // of this client, in its channels
	Closing <-chan struct{}                  // ends Ready
	Denied  func(err error) bool
	Broken  func(owner string, fence int64, reason string)
	// Unclaimed is told of a grant that nobody waits for here.
	Unclaimed func(owner string, g Grant)
	// a subscription that holders want was confirmed: call Keep, and messages may have been lost
	// before
	Changed func(slot uint16)
	Refused func(err error) // no subscription is permitted
}

// Inbox is safe for concurrent use.
type Inbox struct {
	Config
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	subs   map[uint16]*subscription
	echoed uint64 // numbers the echoes
}

// Grant is a lock that was handed over.
type Grant struct {
	Fence   int64
	UntilMS int64 // the lease's end by the server's clock
	Block   int64 // tokens reserved, from Fence on
}

// New returns an Inbox without subscriptions.
func New(cfg Config) *Inbox {
	in := &Inbox{Config: cfg, subs: map[uint16]*subscription{}}
	in.ctx, in.cancel = context.WithCancel(context.Background())
	return in
}

func (in *Inbox) channel(slot uint16) string {
	name := "inbox:" + in.ID
	if !in.Slotted || strings.IndexByte(in.Prefix, '{') >= 0 {
		return in.Prefix + name
	}
	return in.Prefix + "{" + cluster.TagFor(slot) + "}" + name
}

// Listening reports whether messages for the slot would be heard now, as far as is known.
func (in *Inbox) Listening(slot uint16) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := in.subs[slot]
	return s != nil && s.ready
}

// Keep counts a holder that leaves the slot's channel with its lock, and returns the channel. It
// returns "", and counts nobody, while there is no subscription; one is begun unless there are
// many, and Changed tells when it stands.
func (in *Inbox) Keep(slot uint16) string {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := in.subs[slot]
	if s == nil && in.ctx.Err() == nil && len(in.subs) < maxKept {
		s = in.listen(slot)
	}
	if s == nil {
		return ""
	}
	if !s.ready {
		s.wanted = true
		in.rest(s) // nobody may come back for it
		return ""
	}
	s.kept++
	return s.channel
}

// Drop undoes one Keep.
func (in *Inbox) Drop(slot uint16) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if s := in.subs[slot]; s != nil && s.kept > 0 {
		s.kept--
		in.rest(s)
	}
}

// listen returns the slot's subscription and starts it if need be. in.mu is held.
func (in *Inbox) listen(slot uint16) *subscription {
	if s := in.subs[slot]; s != nil {
		return s
	}
	ctx, stop := context.WithCancel(in.ctx)
	s := &subscription{slot: slot, channel: in.channel(slot), waiters: map[string][]*Waiter{}, echoes: map[string]chan struct{}{},
		changed: make(chan struct{}), stop: stop, restart: func() {}}
	in.subs[slot] = s
	in.done.Add(1)
	go in.receive(ctx, s)
	return s
}

// rest gives up a slot's subscription that stays unused. in.mu is held.
func (in *Inbox) rest(s *subscription) {
	if !in.Slotted || s.used() || in.ctx.Err() != nil {
		return
	}
	if s.idle != nil {
		s.idle.Reset(idleSlot)
		return
	}
	s.idle = time.AfterFunc(idleSlot, func() {
		in.mu.Lock()
		unused := !s.used() && in.subs[s.slot] == s
		if unused {
			delete(in.subs, s.slot)
		}
		in.mu.Unlock()
		if unused {
			s.stop()
		}
	})
}

// Close ends every subscription, and waits for their goroutines until ctx ends.
func (in *Inbox) Close(ctx context.Context) {
	in.mu.Lock()
	in.cancel()
	for _, s := range in.subs {
		if s.idle != nil {
			s.idle.Stop()
		}
	}
	in.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		in.done.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
