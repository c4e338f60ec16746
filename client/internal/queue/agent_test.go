package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/inbox"
	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/holdfast-go/holdfast/functions"
)

// A message is reckoned by the clock that the last answer told. That can be another server's, if the
// subscription is newer than the answer: also when a wait by it is under way, or had no answer.
func TestAGrantByANewSubscriptionIsConfirmed(t *testing.T) {
	q := New(Config{Owner: func(string) string { return "own" }, Jitter: func(time.Duration) time.Duration { return 0 }})
	terms := &lease.Terms{Length: 30 * time.Second, RenewEvery: 10 * time.Second}
	e := newEntry(q, &Request{Key: "k", Terms: terms})
	e.agent, e.wake = true, make(chan struct{}, 1) // no goroutine: the test makes the calls
	w := e.waiter(t.Context(), &Request{Terms: terms})
	now := time.Now()
	held := fcall.Reply{Holder: "other", Fence: 5, Why: functions.WhyHeld, Remaining: time.Minute, Waiters: 1,
		ServerMS: now.UnixMilli(), Subscribers: 1}
	answer := func(a Action, o fcall.Outcome) {
		e.call = Action{}
		e.answered(t.Context(), a, o, now)
	}
	answer(e.machine.Begin(&w.Waiter, false, e.now()), fcall.Outcome{Reply: held})
	e.place = &place{entry: e, owner: "own"}
	answer(e.call, fcall.Outcome{Reply: held}) // polled: there is no subscription yet
	e.step(Event{Kind: Timer})
	e.place.state = inbox.State{Channel: "channel"}
	answer(e.call, fcall.Outcome{Err: fmt.Errorf("%w: reset", fcall.ErrUnreachable)})
	require.Equal(t, Standing, e.machine.State())

	e.grant(inbox.Grant{Fence: 9, UntilMS: now.Add(time.Minute).UnixMilli(), Tokens: 1})
	require.Equal(t, Confirming, e.machine.State())
	require.Equal(t, Renew, e.call.Op)
}
