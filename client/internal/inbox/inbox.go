// SPDX-License-Identifier: Apache-2.0

// Package inbox receives what the library publishes to this client: grants for owners that wait, and
// hints to look for owners that hold. There is one channel for each hash slot that it is needed in,
// because a shard channel belongs to a slot, and one in all without Cluster. It knows owners and
// slots, and nothing of locks.
//
// Messages can be lost, so nothing may depend on them alone: whoever claims an owner is told to look
// after every new subscription but the first, and has a timer of its own.
package inbox

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/redis/rueidis"
)

// The times of an inbox.
const (
	// An unused subscription of a slot in Cluster is given up after this. It is longer than most
	// leases, so that a lock that is wanted again and again keeps its subscription.
	idleSlot = 30 * time.Second

	// The pauses between two subscriptions: growing, and where the server permits none.
	shortPause   = 10 * time.Millisecond
	longPause    = time.Second
	refusedPause = 30 * time.Second
)

// Config is what an Inbox needs. The functions are called from goroutines of rueidis: they must not
// block.
type Config struct {
	Redis   rueidis.Client
	Slotted bool   // Cluster
	Prefix  string // of channels: one ACL pattern covers keys and channels
	ID      string // of this client, in its channels
	// Unclaimed is told of a grant to an owner that nobody claims.
	Unclaimed func(owner string, g Grant)
	Refused   func(err error) // no subscription is permitted
}

// Inbox is safe for concurrent use.
type Inbox struct {
	Config
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu   sync.Mutex
	subs map[uint16]*subscription
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

// Channel is where messages for the slot are received now, as far as is known; "": nowhere.
func (in *Inbox) Channel(slot uint16) string {
	in.mu.Lock()
	defer in.mu.Unlock()
	if s := in.subs[slot]; s != nil {
		return s.state.Channel
	}
	return ""
}

// listen returns the slot's subscription and starts it if need be. in.mu is held.
func (in *Inbox) listen(slot uint16) *subscription {
	if s := in.subs[slot]; s != nil {
		return s
	}
	ctx, stop := context.WithCancel(in.ctx)
	s := &subscription{channel: in.channel(slot), claims: map[string][]*Claim{}, state: &State{over: make(chan struct{})}}
	s.idle = time.AfterFunc(idleSlot, func() { // nobody uses it. Without Cluster the only one stays
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.Slotted && len(s.claims) == 0 && in.subs[slot] == s {
			delete(in.subs, slot)
			stop()
		}
	})
	in.subs[slot] = s
	if in.ctx.Err() == nil {
		in.done.Go(func() { in.receive(ctx, s) })
	}
	return s
}

// Close ends every subscription, and waits for their goroutines until ctx ends.
func (in *Inbox) Close(ctx context.Context) {
	in.mu.Lock()
	in.cancel()
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
