// SPDX-License-Identifier: Apache-2.0

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

// State is how a subscription was once.
type State struct {
	Channel string        // "": poll, there is no subscription
	refused bool          // the server permits none
	over    chan struct{} // closed when it has changed
}

// Ready blocks until the subscription is confirmed or refused, for patience at the most: then poll
// until it is.
func (c *Claim) Ready(ctx context.Context, patience time.Duration) *State {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	state := c.State()
	for ; state.Channel == "" && !state.refused; state = c.State() {
		select {
		case <-state.over:
		case <-ctx.Done():
			return state
		case <-c.inbox.ctx.Done():
			return state
		}
	}
	return state
}

// State is how the subscription is now.
func (c *Claim) State() *State {
	c.inbox.mu.Lock()
	defer c.inbox.mu.Unlock()
	return c.sub.state
}

// Stale reports whether the subscription has changed since.
func (s *State) Stale() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// Unheard reports that the primary has no subscriber on the channel of this State: the subscription
// is at another node, or gone. It is made anew.
func (c *Claim) Unheard(state *State) {
	in, s := c.inbox, c.sub
	in.mu.Lock()
	defer in.mu.Unlock()
	if s.state == state {
		s.state = &State{over: state.over}
		s.restart()
	}
}
