package inbox

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
)

// subscription is one channel. The fields behind channel are guarded by Inbox.mu.
type subscription struct {
	slot    uint16
	channel string
	waiters map[string][]*Waiter     // by owner
	echoes  map[string]chan struct{} // closed when the echo has come back
	kept    int                      // holders that left this channel with their lock
	wanted  bool                     // a holder asked for the channel before it was ready
	ready   bool                     // the server confirmed it
	refused bool                     // the server does not allow it: poll
	changed chan struct{}            // closed, and made anew, when ready or refused changes
	stop    context.CancelFunc
	restart context.CancelFunc // ends the present Receive
	idle    *time.Timer
}

func (s *subscription) used() bool { return len(s.waiters)+s.kept > 0 }

const (
	shortPause   = 10 * time.Millisecond
	longPause    = time.Second
	refusedPause = 30 * time.Second
)

// receive keeps one channel subscribed. rueidis subscribes again by itself after a lost connection,
// and returns when the slot has moved or the primary was demoted. Both end in a confirmation, after
// which every waiter asks again.
//
// When it ends, rueidis leaves the channel subscribed on its connection, and what comes there is
// dropped. SUNSUBSCRIBE would end that, but a server that is BUSY with a script refuses it, and
// then rueidis 1.0.78 panics.
func (in *Inbox) receive(ctx context.Context, s *subscription) {
	defer in.done.Done()
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(event rueidis.PubSubSubscription) {
		if event.Channel == s.channel {
			in.set(s, event.Kind == "ssubscribe", false)
		}
	})
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		listening, restart := context.WithCancel(hooked)
		in.mu.Lock()
		s.restart = restart
		in.mu.Unlock()
		began := time.Now()
		err := in.hear(listening, s)
		restart()
		if ctx.Err() != nil {
			break
		}
		refused := err != nil && in.Denied(err)
		in.set(s, false, refused)
		switch {
		case refused:
			in.Refused(err)
			pause = refusedPause
		case time.Since(began) > longPause:
			pause = shortPause
		}
		if !wait(ctx, pause) {
			break
		}
	}
}

// hear subscribes, and returns when that ends.
func (in *Inbox) hear(ctx context.Context, s *subscription) error {
	redis := in.Redis(s.slot)
	if redis == nil {
		return errNowhere
	}
	return redis.Receive(ctx, redis.B().Ssubscribe().Channel(s.channel).Build(), func(m rueidis.PubSubMessage) { in.deliver(s, m.Message) })
}

var errNowhere = errors.New("inbox: no connection yet")

// wait pauses for d, or returns false when ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// set notes what the server said of the subscription, and makes every waiter ask again.
func (in *Inbox) set(s *subscription, ready, refused bool) {
	in.mu.Lock()
	s.ready, s.refused = ready, refused
	close(s.changed)
	s.changed = make(chan struct{})
	told := ready && (s.kept > 0 || s.wanted)
	s.wanted = s.wanted && !ready
	in.mu.Unlock()
	if told {
		in.Changed(s.slot)
	}
}
