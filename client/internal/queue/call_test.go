// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

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
	terms := &lease.Terms{Length: 30 * time.Second, RenewEvery: 10 * time.Second}
	now := time.Now()
	held := fcall.Reply{Holder: "other", Fence: 5, Why: functions.WhyHeld, Remaining: time.Minute, Waiters: 1,
		ServerMS: now.UnixMilli(), Subscribers: 1}
	e, w := begun(&slow{}, &Request{Key: "k", Terms: terms})
	answer := func(o fcall.Outcome, state *inbox.State) {
		e.answered(e.machine.call, o, nil, now, state)
	}
	polls := &inbox.State{}
	answer(fcall.Outcome{Reply: held}, nil)
	answer(fcall.Outcome{Reply: held}, polls) // there is no subscription yet
	e.step(time.Now(), Event{Kind: Timer})
	answer(fcall.Outcome{Err: fmt.Errorf("%w: reset", fcall.ErrUnreachable)}, &inbox.State{Channel: "channel"})
	require.Equal(t, Standing, e.machine.State())

	e.grant("own", inbox.Grant{Fence: 9, UntilMS: now.Add(time.Minute).UnixMilli(), Tokens: 1})
	require.Equal(t, Confirming, e.machine.State())
	require.Equal(t, Renew, e.machine.call.Op)
	require.Same(t, w, e.machine.call.Waiter)
}

// A lock that is handed over is the server's for two seconds at most: more is by another clock, of a server
// that was stepped, or of another primary.
func TestAGrantByAnotherClockIsConfirmed(t *testing.T) {
	for until, want := range map[time.Duration]State{lease.Handover: Held, lease.Handover + time.Second: Confirming, time.Hour: Confirming} {
		e := told(t, 9, until, &inbox.State{Channel: "channel"})
		require.Equal(t, want, e.machine.State(), until)
	}
}

// A token that is ahead of the server's clock, as somebody can write it who may publish there, is the server's
// when that says so: or else a resource would take no later one for ever.
func TestAGrantOfATokenThatIsAheadIsConfirmed(t *testing.T) {
	for ahead, want := range map[time.Duration]State{0: Held, time.Second: Confirming, lease.Handover: Confirming, 1000 * time.Hour: Confirming} {
		e := told(t, time.Now().Add(ahead).UnixMicro(), lease.Handover, &inbox.State{Channel: "channel"})
		require.Equal(t, want, e.machine.State(), ahead)
	}
}

// By a subscription that has changed since the answer it can be of another primary.
func TestAGrantBehindAChangedSubscriptionIsConfirmed(t *testing.T) {
	state, over := &inbox.State{Channel: "channel"}, make(chan struct{})
	close(over)
	*(*chan struct{})(reflect.ValueOf(state).Elem().FieldByName("over").Addr().UnsafePointer()) = over
	require.True(t, state.Stale())
	require.Equal(t, Confirming, told(t, 9, lease.Handover, state).machine.State())
}

// told is a queue that a grant until then was handed to, by the clock that the last answer told.
func told(t *testing.T, token int64, until time.Duration, state *inbox.State) *entry {
	t.Helper()
	terms := &lease.Terms{Length: 30 * time.Second, RenewEvery: 10 * time.Second}
	now := time.Now()
	e, _ := begun(&slow{}, &Request{Key: "k", Terms: terms})
	t.Cleanup(func() { e.Keeper.Close(t.Context()) })
	for range 2 {
		e.answered(e.machine.call, fcall.Outcome{Reply: fcall.Reply{Holder: "other", Fence: 5, Why: functions.WhyHeld,
			Remaining: time.Minute, Waiters: 1, ServerMS: now.UnixMilli(), Subscribers: 1}}, nil, now, state)
	}
	e.grant("own", inbox.Grant{Fence: token, UntilMS: now.Add(until).UnixMilli(), Tokens: 1})
	return e
}

// Who cannot be told asks often, and who can be asks so that a dead one before it is noticed: for long if
// nothing changes, but never for longer than is documented.
func TestPausesBetweenQuestions(t *testing.T) {
	told, held := &inbox.State{Channel: "channel"}, fcall.Reply{Why: functions.WhyHeld, Remaining: time.Minute, Subscribers: 1}
	unheard, foreign, kept := held, held, held
	unheard.Subscribers, foreign.Why, kept.Why = 0, functions.WhyForeign, functions.WhyKept
	for name, c := range map[string]struct {
		reply       fcall.Reply
		heard       *inbox.State
		least, most time.Duration
	}{
		"no subscription":         {held, nil, pollPause, pollPause},
		"none is permitted":       {held, &inbox.State{}, pollPause, pollPause},
		"the server hears it not": {unheard, told, pollPause, pollPause},
		"another service's":       {foreign, told, pollPause, pollPause},
		"told":                    {held, told, lookPause, lookPause + beat},
		"kept":                    {kept, told, longestSleep, longestSleep},
		"kept, no subscription":   {kept, nil, lookPause, lookPause},
	} {
		e, _ := begun(&slow{}, &Request{Key: "k", Terms: &lease.Terms{Length: 30 * time.Second}})
		e.last, e.heard, e.look = &c.reply, c.heard, lookPause
		require.GreaterOrEqual(t, e.pause(), c.least, name)
		require.LessOrEqual(t, e.pause(), c.most, name)
		e.look = longestLook // nothing has changed for long
		require.LessOrEqual(t, e.pause(), 12*time.Second, name)
		e.err, e.Queues.Jitter = fcall.ErrUnreachable, func(most time.Duration) time.Duration { return most }
		e.machine.due = e.now()
		require.Equal(t, 5*failPause, e.pause(), "an outage begins")
		e.machine.due -= time.Minute
		require.Equal(t, failPause+lookPause, e.pause(), "it lasts")
		e.machine.state = Confirming
		require.Equal(t, 5*failPause, e.pause(), "and a message came of a grant")
		e.mu.Unlock()
	}
}

// The machine was suspended with a waiter in line: it was handed the lock meanwhile, and the message lies in
// a socket. By the monotonic clock, which stood still, hardly a moment has passed since the last answer, so it
// looks as if nearly all of the two seconds were left; the server's lease is long over.
func TestAGrantThatWasReadAfterASuspensionIsConfirmed(t *testing.T) {
	terms := &lease.Terms{Length: 30 * time.Second, RenewEvery: 10 * time.Second}
	now, state := time.Now(), &inbox.State{Channel: "channel"}
	asked := beforeASuspension(t, now)
	e, _ := begun(&slow{}, &Request{Key: "k", Terms: terms})
	t.Cleanup(func() { e.Keeper.Close(t.Context()) })
	for range 2 {
		e.answered(e.machine.call, fcall.Outcome{Reply: fcall.Reply{Holder: "other", Fence: 5, Why: functions.WhyHeld,
			Remaining: time.Minute, Waiters: 1, ServerMS: asked.UnixMilli(), Subscribers: 1}}, nil, asked, state)
	}
	// handed over at once, for two seconds, by the server's clock
	e.grant("own", inbox.Grant{Fence: 9, UntilMS: asked.Add(lease.Handover).UnixMilli(), Tokens: 1})
	require.NotEqual(t, Held, e.machine.State(), "it counts on a lease that was over eight seconds ago")
	require.Equal(t, Confirming, e.machine.State())
}

// beforeASuspension is ten seconds ago by the wall clock, and now by the monotonic one.
func beforeASuspension(t *testing.T, now time.Time) time.Time {
	asked := now
	*(*uint64)(unsafe.Pointer(&asked)) -= 10 << 30
	require.Zero(t, now.Sub(asked))
	require.Equal(t, 10*time.Second, now.Round(0).Sub(asked.Round(0)))
	return asked
}

// Of a limited lock nobody looks at the key after a second: what is due of it must be known from the beginning.
func TestALeaseThatWasGrantedAcrossASuspensionEndsInTime(t *testing.T) {
	answered := 0
	e, w := begun(&slow{}, &Request{Key: "k", Terms: &lease.Terms{Length: 30 * time.Second, RenewEvery: 20 * time.Second, Crowd: 2}})
	t.Cleanup(func() { e.Keeper.Close(t.Context()) })
	e.Queues.Answered = func() { answered++ }
	now := time.Now()
	e.answered(e.machine.call, fcall.Outcome{Reply: fcall.Reply{Yes: true, Fence: 5, Top: 5}}, nil, beforeASuspension(t, now), nil)
	require.NoError(t, w.err)
	require.Equal(t, 1, answered)
	require.LessOrEqual(t, w.holder.Lease.Due().Sub(now), 11*time.Second)
	require.LessOrEqual(t, w.holder.Lease.Until().Sub(now), 20*time.Second)
}

// In a message the slot stands in place of tokens: it is kept with its token, whatever comes between.
func TestASlotStaysWithItsToken(t *testing.T) {
	terms := &lease.Terms{Length: 30 * time.Second, RenewEvery: 10 * time.Second, Crowd: lease.Shared}
	now, state := time.Now(), &inbox.State{Channel: "channel"}
	refused := fcall.Outcome{Reply: fcall.Reply{Fence: 5, Why: functions.WhyLimited, Remaining: time.Minute, Waiters: 1,
		ServerMS: now.UnixMilli(), Subscribers: 1}}
	message := func(fence, slot int64) inbox.Grant {
		return inbox.Grant{Fence: fence, UntilMS: now.Add(2 * time.Second).UnixMilli(), Tokens: slot}
	}
	for slot, tell := range map[int]func(e *entry){
		3: func(e *entry) { // the answer to the wait: the message is an older one
			e.grant("own", message(7, 4))
			e.answered(e.machine.call, fcall.Outcome{Reply: fcall.Reply{Yes: true, Fence: 9, Top: 11}}, nil, now, state)
		},
		4: func(e *entry) { // the message, before the refusal that was made earlier, and the confirmation
			e.grant("own", message(9, 4))
			e.grant("own", message(7, 8))
			e.answered(e.machine.call, refused, nil, now, state)
			e.grant("own", message(7, 8))
			require.Equal(t, Confirming, e.machine.State())
			e.answered(e.machine.call, fcall.Outcome{Reply: fcall.Reply{Yes: true, Fence: 9}}, nil, now, nil)
		},
		5: func(e *entry) { // the message alone
			e.answered(e.machine.call, refused, nil, now, state)
			e.grant("own", message(9, 5))
			e.grant("own", message(9, 5))
		},
	} {
		e, w := begun(&records{calls: make(chan fcall.Call, 9)}, &Request{Key: "k", Terms: terms})
		require.Nil(t, e.shard.keys, "it is in nobody's queue")
		e.answered(e.machine.call, refused, nil, now, nil)
		require.Equal(t, Asking, e.machine.State())
		tell(e)
		require.NoError(t, w.err)
		require.NotNil(t, w.holder, slot)
		require.Equal(t, []int64{int64(slot), 9, 9, 9}, []int64{int64(w.holder.Slot), w.holder.Fence, w.holder.First, w.holder.Top})
		e.mu.Unlock()
		e.Keeper.Close(t.Context())
	}
}

// A call that was refused in the middle may have been done: what it left is given back.
func TestWhatARefusedCallLeftIsGivenBack(t *testing.T) {
	backend := &records{calls: make(chan fcall.Call, 1)}
	e, w := begun(backend, &Request{Key: "k", Terms: &lease.Terms{Length: 30 * time.Second}})
	t.Cleanup(func() { e.Keeper.Close(t.Context()) })
	refused := fcall.Uncertain(&fcall.Refusal{Kind: fcall.ErrDenied, Text: "WAIT: NOPERM"})
	e.answered(e.machine.call, fcall.Outcome{Err: refused}, nil, time.Now(), nil)
	e.mu.Unlock()
	require.ErrorIs(t, w.err, fcall.ErrDenied)
	require.Equal(t, fcall.Leave, (<-backend.calls).Verb)
}

// begun is a queue that a Waiter has entered. Its mutex is held: the test makes the calls.
func begun(backend fcall.Backend, r *Request) (*entry, *Waiter) {
	q := New(Config{Backend: backend, Owner: func(string) string { return "own" },
		Jitter: func(time.Duration) time.Duration { return 0 }, Answered: func() {},
		LostError: func(_ *holding.Holder, why error, _ string) error { return why }})
	q.Keeper = keeper.New(keeper.Config{Backend: backend, Cache: tracking.New(),
		OnEnded: func(*holding.Ending) {}, OnGone: func(*holding.Holding) {}})
	e := q.enter(r)
	w := e.waiter(context.Background(), r)
	e.step(time.Now(), Event{Kind: Enter, Waiter: w})
	return e, w
}

// The tokens of a run are used one a microsecond, so that the server's clock has passed each: from when
// the answer has come, because the server may have run the call no earlier.
func TestARunCountsFromItsAnswer(t *testing.T) {
	backend := &slow{}
	e, w := begun(backend, &Request{Key: "k", Terms: &lease.Terms{Length: 30 * time.Second, RenewEvery: 10 * time.Second}})
	t.Cleanup(func() { e.Keeper.Close(t.Context()) })
	e.make(t.Context(), e.machine.call, false, time.Now())
	require.NoError(t, w.err)
	require.False(t, w.holder.Since.Before(backend.ran))
}

// slow is a Backend that grants a run of tokens after a moment.
type slow struct {
	fcall.Backend
	ran time.Time
}

func (s *slow) Voting() bool { return false }

func (s *slow) Slot(string) uint16 { return 0 }

func (s *slow) Do(context.Context, fcall.Call) (fcall.Reply, error) {
	s.ran = time.Now().Add(5 * time.Millisecond)
	for time.Now().Before(s.ran) {
		runtime.Gosched()
	}
	return fcall.Reply{Yes: true, Fence: 7, Top: 9}, nil
}

// Who declines a lock that was passed on gives back what others have used; who declines the first token
// has used nothing, so that no minimum is kept.
func TestWhatIsDeclinedWasNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a lock is passed on for two milliseconds, and this may take longer
		backend := &records{calls: make(chan fcall.Call, 1)}
		r := Request{Key: "k", Terms: &lease.Terms{Length: 30 * time.Second, RenewEvery: 10 * time.Second}}
		granted := fcall.Outcome{Reply: fcall.Reply{Yes: true, Fence: 7, Top: 9}}
		e, w := begun(backend, &r)
		e.answered(e.machine.call, granted, nil, time.Now(), nil)
		e.mu.Unlock()
		e.Decline(w.holder)
		call := <-backend.calls
		require.Equal(t, []any{fcall.Leave, int64(7)}, []any{call.Verb, call.Fence})
		e.Keeper.Close(t.Context())

		e, w = begun(backend, &r)
		next := e.waiter(t.Context(), &r)
		e.step(time.Now(), Event{Kind: Enter, Waiter: next})
		e.answered(e.machine.call, granted, nil, time.Now(), nil)
		e.h.Since = time.Now().Add(-time.Millisecond)
		e.mu.Unlock()
		e.Decline(w.holder)
		require.EqualValues(t, 8, next.holder.Fence)
		e.Decline(next.holder)
		call = <-backend.calls
		require.Equal(t, []any{fcall.Release, int64(7)}, []any{call.Verb, call.Fence})
		e.Keeper.Close(t.Context())
	})
}

// records is a Backend that does all it is sent.
type records struct {
	fcall.Backend
	calls chan fcall.Call
}

func (r *records) Voting() bool { return false }

func (r *records) Slot(string) uint16 { return 0 }

func (r *records) Send(_ context.Context, calls []fcall.Call) []fcall.Outcome {
	for _, c := range calls {
		r.calls <- c
	}
	return make([]fcall.Outcome, len(calls))
}

// A deadline by the wall clock alone, as one of time.Unix, stays as far away as it is, also if the machine's
// clock was stepped, or the machine suspended, since the client began.
func TestADeadlineByTheWallClock(t *testing.T) {
	for _, ahead := range []int64{-3600, 3600} {
		e, _ := begun(&slow{}, &Request{Key: "k", Terms: &lease.Terms{Length: time.Second}})
		*(*int64)(unsafe.Pointer(&e.born)) += ahead << 30 // the wall clock of born, as package time has it
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Round(0).Add(time.Minute))
		defer cancel()
		w := e.waiter(ctx, &Request{Key: "k", Terms: &lease.Terms{}})
		require.InDelta(t, time.Minute, w.Until-e.now(), float64(time.Second))
	}
}
