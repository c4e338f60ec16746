package inbox

import (
	"context"
	"slices"
	"time"
)

// Waiter is where an owner that waits gets its grant.
type Waiter struct {
	Grants chan Grant // holds the latest only
	inbox  *Inbox
	sub    *subscription
	owner  string
}

// State is what a waiter must know of its subscription.
type State struct {
	Channel string          // "": poll, there is no subscription
	Changed <-chan struct{} // closed when to ask again, because messages may have been lost
}

// Stale reports whether the State has changed.
func (s State) Stale() bool {
	select {
	case <-s.Changed:
		return true
	default:
		return false
	}
}

// Enter makes the client hear grants for owner in the slot, until Leave. Several waiters of one
// owner hear the same.
func (in *Inbox) Enter(slot uint16, owner string) (*Waiter, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ctx.Err() != nil {
		return nil, ErrClosed
	}
	s := in.listen(slot)
	w := &Waiter{Grants: make(chan Grant, 1), inbox: in, sub: s, owner: owner}
	s.waiters[owner] = append(s.waiters[owner], w)
	return w, nil
}

// Leave ends it.
func (w *Waiter) Leave() {
	in, s := w.inbox, w.sub
	in.mu.Lock()
	defer in.mu.Unlock()
	left := slices.DeleteFunc(s.waiters[w.owner], func(other *Waiter) bool { return other == w })
	if len(left) == 0 {
		delete(s.waiters, w.owner)
	} else {
		s.waiters[w.owner] = left
	}
	in.rest(s)
}

// Ready blocks until the subscription is confirmed or refused, for patience at the most: then the
// waiter polls until it is.
func (w *Waiter) Ready(ctx context.Context, patience time.Duration) (State, error) {
	state, settled := w.state()
	if settled {
		return state, nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for ; !settled; state, settled = w.state() {
		select {
		case <-state.Changed:
		case <-timer.C:
			return state, nil
		case <-ctx.Done():
			return state, ctx.Err()
		case <-w.inbox.ctx.Done():
			return state, ErrClosed
		case <-w.inbox.Closing:
			return state, ErrClosed
		}
	}
	return state, nil
}

func (w *Waiter) state() (state State, settled bool) {
	w.inbox.mu.Lock()
	defer w.inbox.mu.Unlock()
	s := w.sub
	state.Changed = s.changed
	if s.ready {
		state.Channel = s.channel
	}
	return state, s.ready || s.refused
}

// Unheard reports that the primary has no subscriber on the channel of this State: the subscription
// is at another node, or gone. It is made anew.
func (w *Waiter) Unheard(state State) {
	in, s := w.inbox, w.sub
	in.mu.Lock()
	again := s.ready && s.changed == state.Changed
	restart := s.restart
	if again {
		s.ready = false
	}
	in.mu.Unlock()
	if again {
		restart()
	}
}
