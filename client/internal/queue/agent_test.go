package queue

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/inbox"
	"github.com/holdfast-go/holdfast/client/internal/keeper"
	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/holdfast-go/holdfast/client/internal/tracking"
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

// The tokens of a run are used one a microsecond, so that the server's clock has passed each: from when
// the answer has come, because the server may have run the call no earlier.
func TestARunCountsFromItsAnswer(t *testing.T) {
	terms := &lease.Terms{Length: 30 * time.Second, RenewEvery: 10 * time.Second}
	for _, straight := range []bool{true, false} {
		backend := &slow{}
		q := New(Config{Backend: backend, Owner: func(string) string { return "own" }, Slot: func(string) uint16 { return 0 },
			LostError: func(_ *holding.Holder, why error, _ string) error { return why }})
		q.Keeper = keeper.New(keeper.Config{Backend: backend, Cache: tracking.New(false), Slot: q.Slot,
			OnEnded: func(*holding.Ending) {}, OnGone: func(*holding.Holding) {}})
		t.Cleanup(func() { q.Keeper.Close(t.Context()) })
		var h *holding.Holder
		var err error
		if straight {
			h, _, err = q.Acquire(t.Context(), Request{Key: "k", Terms: terms})
		} else {
			e := newEntry(q, &Request{Key: "k", Terms: terms})
			w := e.waiter(t.Context(), &Request{Terms: terms})
			a, sent := e.machine.Begin(&w.Waiter, false, e.now()), time.Now()
			reply, _ := backend.Do(t.Context(), fcall.Call{})
			e.answered(t.Context(), a, fcall.Outcome{Reply: reply}, sent)
			h, err = w.holder, w.err
		}
		require.NoError(t, err)
		require.False(t, h.Since.Before(backend.ran))
	}
}

// slow is a Backend that grants a run of tokens after a moment.
type slow struct {
	fcall.Backend
	ran time.Time
}

func (s *slow) Voting() bool { return false }

func (s *slow) Do(context.Context, fcall.Call) (fcall.Reply, error) {
	s.ran = time.Now().Add(5 * time.Millisecond)
	for time.Now().Before(s.ran) {
		runtime.Gosched()
	}
	return fcall.Reply{Yes: true, Fence: 7, Top: 9}, nil
}
