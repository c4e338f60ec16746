package inbox

import (
	"context"
	"slices"
	"time"
)

// Claim is of an owner that waits, or has waited and holds.
type Claim struct {
	inbox   *Inbox
	sub     *subscription
	owner   string
	receive func(Grant)
}

// Claim makes the client receive what is published for an owner in the slot, until Drop. receive must
// not block. Several claims of one owner receive the same.
func (in *Inbox) Claim(slot uint16, owner string, receive func(Grant)) *Claim {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := in.listen(slot)
	c := &Claim{inbox: in, sub: s, owner: owner, receive: receive}
	s.claims[owner] = append(s.claims[owner], c)
	return c
}

// Drop ends it.
func (c *Claim) Drop() {
	in, s := c.inbox, c.sub
	in.mu.Lock()
	defer in.mu.Unlock()
	left := slices.DeleteFunc(s.claims[c.owner], func(other *Claim) bool { return other == c })
	if s.claims[c.owner] = left; len(left) == 0 {
		delete(s.claims, c.owner)
	}
	s.idle.Reset(idleSlot)
}

// State is what a waiter must know of the subscription.
type State struct {
	Channel string // "": poll, there is no subscription
	settled bool   // the server has confirmed or refused it
	version <-chan struct{}
}

// Ready blocks until the subscription is confirmed or refused, for patience at the most: then poll
// until it is.
func (c *Claim) Ready(ctx context.Context, patience time.Duration) State {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	state := c.State()
	for ; !state.settled; state = c.State() {
		select {
		case <-state.version:
		case <-ctx.Done():
			return state
		case <-c.inbox.ctx.Done():
			return state
		}
	}
	return state
}

// State is how the subscription is now.
func (c *Claim) State() State {
	c.inbox.mu.Lock()
	defer c.inbox.mu.Unlock()
	s := c.sub
	state := State{settled: s.ready || s.refused, version: s.changed}
	if s.ready {
		state.Channel = s.channel
	}
	return state
}

// Stale reports whether the subscription has changed since.
func (s State) Stale() bool {
	select {
	case <-s.version:
		return true
	default:
		return false
	}
}

// Unheard reports that the primary has no subscriber on the channel of this State: the subscription
// is at another node, or gone. It is made anew.
func (c *Claim) Unheard(state State) {
	in, s := c.inbox, c.sub
	in.mu.Lock()
	defer in.mu.Unlock()
	if s.ready && s.changed == state.version {
		s.ready = false
		s.restart()
	}
}
