// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/redis/rueidis"
)

// subscription is one channel. The fields behind channel are guarded by Inbox.mu.
type subscription struct {
	channel string
	claims  map[string][]*Claim // by owner
	state   *State
	restart context.CancelFunc // ends the present Receive
	idle    *time.Timer        // looks whether anybody uses it
	before  bool               // it was confirmed once
}

// receive keeps one channel subscribed. rueidis subscribes again by itself after a lost connection,
// and returns when the slot has moved or the primary was demoted. Both end in a confirmation, after
// which everybody looks.
//
// When it ends, rueidis leaves the channel subscribed on its connection, and what comes there is
// dropped. SUNSUBSCRIBE would end that, but a server that is BUSY with a script refuses it, and
// then rueidis 1.0.78 panics.
func (in *Inbox) receive(ctx context.Context, s *subscription) {
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(event rueidis.PubSubSubscription) {
		if event.Channel == s.channel {
			in.set(s, event.Kind == "ssubscribe", false)
		}
	})
	for pause := shortPause; ctx.Err() == nil; pause = min(2*pause, longPause) {
		listening, restart := context.WithCancel(hooked)
		in.mu.Lock()
		s.restart = restart
		in.mu.Unlock()
		began := time.Now()
		command := in.Redis.B().Ssubscribe().Channel(s.channel).Build()
		err := in.Redis.Receive(listening, command, func(m rueidis.PubSubMessage) { in.deliver(s, m.Message) })
		restart()
		if ctx.Err() != nil {
			return
		}
		refused := errors.Is(fcall.Classify(ctx, err), fcall.ErrDenied)
		in.set(s, false, refused)
		switch {
		case refused:
			in.Refused(err)
			pause = refusedPause
		case time.Since(began) > longPause:
			pause = shortPause
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// set notes what the server said of the subscription. When it is new, messages may have been lost, and
// the primary of the slot may be another one: everybody looks, but after the first one.
func (in *Inbox) set(s *subscription, ready, refused bool) {
	state := &State{refused: refused, over: make(chan struct{})}
	var all []*Claim
	in.mu.Lock()
	if ready {
		for _, claims := range s.claims {
			if s.before { // the first one is waited for, or polls stand in for it
				all = append(all, claims...)
			}
		}
		state.Channel, s.before = s.channel, true
	}
	close(s.state.over)
	s.state = state
	in.mu.Unlock()
	for _, c := range all {
		c.receive(Grant{})
	}
}
