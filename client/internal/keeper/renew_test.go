// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

func seconds(all ...float64) (at []time.Duration) {
	for _, s := range all {
		at = append(at, time.Duration(math.Round(s*1000))*ms)
	}
	return at
}

func TestALockIsRenewed(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		_, work, _ := b.hold(b.Context(), terms)
		time.Sleep(time.Minute)
		require.Equal(t, seconds(10, 20, 30, 40, 50, 60), b.server.asked(fcall.Renew))
		require.Equal(t, seconds(1), b.server.asked(fcall.Inspect), "for tracking")
		require.NoError(t, work.Err())
		require.Equal(t, fcall.Call{Verb: fcall.Renew, Key: "lock:job", Owner: "owner", TTL: "30000", Fence: token}, b.server.seen().calls[1].Call)
		require.Len(t, b.heardNow().renewals, 5, "the last has no answer yet")
	})
}

func TestARenewalThatFailsIsRepeated(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		_, work, _ := b.hold(b.Context(), terms)
		b.server.set(func(s *server) { s.answer = answers(ours, unreachable, unreachable, ours) })
		time.Sleep(30 * time.Second)
		require.Equal(t, []time.Duration{10 * time.Second, 11501 * ms, 13002 * ms, 23002 * ms}, b.server.asked(fcall.Renew))
		require.NoError(t, work.Err())
		require.Equal(t, 2, b.heardNow().unanswered)
		require.Len(t, b.heardNow().renewals, 4)
		require.ErrorIs(t, b.heardNow().renewals[1], fcall.ErrUnreachable)
	})
}

func TestFailing(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		h, work, _ := b.hold(b.Context(), terms)
		b.server.set(func(s *server) { s.answer = answers(ours, unreachable, ours, unreachable) })
		time.Sleep(11 * time.Second)
		require.True(t, b.Failing())
		time.Sleep(2 * time.Second)
		require.False(t, b.Failing(), "renewed")
		time.Sleep(10 * time.Second)
		require.True(t, b.Failing())
		<-work.Done()
		synctest.Wait()
		require.False(t, b.Failing(), "lost")
		b.Renewed(h, time.Now(), unreachable)
		require.False(t, b.Failing(), "the answer came after that")
	})
}

// byLength has a slot for each length of a key.
type byLength struct{ fcall.Backend }

func (byLength) Slot(key string) uint16 { return uint16(len(key)) }

// Neighbouring slots share a pipeline, and their locks are at two nodes, perhaps, of which one is silent.
func TestASilentNodeLeavesTheLocksOfOthers(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		b.Backend = byLength{b.server}
		_, work, _ := b.hold(b.Context(), terms)
		ref := &holding.Ref{Context: t.Context(), Cancel: func(error) {}}
		h := holding.New(holding.Grant{Key: "lock:neighbour", Owner: "owner", Terms: terms, First: token, Top: token,
			Lease: lease.New(terms, time.Now()), LostError: func(_ *holding.Holder, why error, _ string) error { return why }})
		require.NoError(t, h.Add(ref, false))
		require.True(t, b.Add(h.Holding))
		time.Sleep(15 * time.Second)
		b.server.set(func(s *server) { s.mute = "lock:neighbour" })
		time.Sleep(5 * time.Minute)
		require.NoError(t, work.Err())
		require.ErrorIs(t, h.Cause(), holding.ErrExpired)

		// Nor has who waits there to wait for that one.
		for _, ride := range []Ride{{Length: time.Minute}, {Length: time.Second}} {
			var answered atomic.Bool
			ride.Call = fcall.Call{Verb: fcall.Wait, Key: "lock:job"}
			ride.Answered = func(o fcall.Outcome, _ time.Time) { answered.Store(o.Err == nil) }
			for range 2 * laneFlights {
				b.Ask(&Ride{Call: fcall.Call{Verb: fcall.Wait, Key: "lock:neighbour"}, Length: ride.Length, Answered: func(fcall.Outcome, time.Time) {}})
			}
			b.Ask(&ride)
			time.Sleep(100 * time.Millisecond)
			require.True(t, answered.Load())
		}
	})
}

// The monotonic clock, which timers go by, stood still meanwhile.
func TestALeaseThatWasRenewedAcrossASuspensionEndsInTime(t *testing.T) {
	now := time.Now()
	sent := now
	*(*uint64)(unsafe.Pointer(&sent)) -= 10 << 30 // by the wall clock ten seconds ago
	require.Zero(t, now.Sub(sent))
	terms := &lease.Terms{Length: 30 * time.Second, RenewEvery: time.Second}
	h := holding.New(holding.Grant{Terms: terms, First: token, Lease: lease.New(terms, now.Add(-20*time.Second))}).Holding
	k := New(Config{OnRenewed: func(*holding.Holder, time.Duration, error) {}})
	answer := fcall.Outcome{Reply: fcall.Reply{Yes: true, Fence: token}}
	for _, renew := range []func(){
		func() { k.Renewed(h, sent, answer) },
		func() { sending{holding: h, action: lease.Renew, length: terms.Length}.late(k, sent, answer) },
	} {
		h.Tell(func(l *lease.Lease) {
			*l = lease.New(terms, now.Add(-20*time.Second))
			l.Step(now)
		})
		renew()
		require.Greater(t, h.Lease.Until().Sub(now), 15*time.Second)
		require.LessOrEqual(t, h.Lease.Until().Sub(now), 20*time.Second)
	}
}

// A server that does not answer has the lock for longer than anybody works under it.
func TestTheDeadlineEndsTheWork(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		_, work, _ := b.hold(b.Context(), terms)
		granted := b.server.seen().until
		b.server.set(func(s *server) { s.answer = answers(unreachable) })
		b.ended(work, 30*time.Second-302*ms, holding.ErrExpired)
		require.True(t, time.Now().Before(granted))
		require.Equal(t, 1, b.heardNow().gone)
		require.Equal(t, []time.Duration{30*time.Second - 302*ms}, b.server.asked(fcall.Release), "the server may have it still")
	})
}

// A pipeline waits for a sixth of the lease at most: at a silent server there are several tries.
func TestASilentServerIsAskedAgain(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		_, work, _ := b.hold(b.Context(), terms)
		b.server.set(func(s *server) { s.silent = true })
		b.ended(work, 30*time.Second-302*ms, holding.ErrExpired)
		require.Equal(t, seconds(10, 16.5, 23, 28.849), b.server.asked(fcall.Renew), "the last pause is half of what is left")
	})
}

// A server that is slow renews all the same: what it says late counts from when it was asked.
func TestALateAnswerCounts(t *testing.T) {
	for took, asked := range map[time.Duration][]time.Duration{6 * time.Second: seconds(10, 20, 30, 40), 9 * time.Second: seconds(10, 16.5, 23, 29.5, 36)} {
		in(t, func(t *testing.T, b *bed) {
			h, work, _ := b.hold(b.Context(), terms)
			b.server.set(func(s *server) { s.took = took })
			time.Sleep(42 * time.Second)
			require.Equal(t, asked, b.server.asked(fcall.Renew))
			require.False(t, until(h).After(b.server.seen().until))
			time.Sleep(10 * time.Minute)
			require.NoError(t, work.Err())
		})
	}
}

func TestALockThatIsRefused(t *testing.T) {
	for _, refusal := range []struct {
		fcall.Reply
		why    error
		reason string
	}{
		{fcall.Reply{Holder: "another", Why: functions.WhyServing}, holding.ErrTaken, `: ""`},
		{fcall.Reply{Why: functions.WhyBroken, Reason: "deploy stuck"}, holding.ErrBroken, `: "deploy stuck"`},
		{fcall.Reply{Yes: true, Fence: token + 1}, holding.ErrTaken, `: ""`}, // a later lock of the same owner
	} {
		in(t, func(t *testing.T, b *bed) {
			h, work, ref := b.hold(b.Context(), terms)
			b.server.set(func(s *server) { s.answer = answers(ours, fcall.Outcome{Reply: refusal.Reply}) })
			b.ended(work, 10*time.Second+ms, refusal.why)
			require.Contains(t, context.Cause(work).Error(), refusal.reason)
			require.ErrorIs(t, b.heardNow().renewals[0], holding.ErrTaken)
			time.Sleep(5 * time.Second)
			require.Empty(t, b.server.asked(fcall.Release), "another server may keep others out until the holder has left")
			last, _, _ := h.Holder().Leave(ref)
			require.True(t, last)
			b.GiveUp(h, token)
			require.Equal(t, []time.Duration{15*time.Second + ms}, b.server.asked(fcall.Release))
		})
	}
	in(t, func(t *testing.T, b *bed) { // its holder never leaves
		b.server.set(func(s *server) { s.answer = answers(no) })
		_, work, _ := b.hold(b.Context(), &lease.Terms{Length: 30 * time.Second, RenewEvery: time.Second / 2})
		b.ended(work, time.Second/2+ms, holding.ErrTaken)
		time.Sleep(30 * time.Second)
		require.Equal(t, 30*time.Second-302*ms, b.server.asked(fcall.Release)[0])
	})
}

// A look that finds another holder ends nothing: a renewal that prolongs nothing says why.
func TestALookThatFindsAnotherHolderIsVerified(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		h, work, _ := b.hold(b.Context(), terms)
		b.server.set(func(s *server) {
			s.answer = answers(fcall.Outcome{Reply: fcall.Reply{Yes: true, Holder: "another", Fence: 8}},
				fcall.Outcome{Reply: fcall.Reply{Why: functions.WhyBroken, Reason: "why not"}})
		})
		b.ended(work, time.Second+2*ms, holding.ErrBroken)
		require.Equal(t, "1", b.server.seen().calls[1].TTL)
		require.Equal(t, lease.Refused, h.Lease.State())
	})
}

// renewFor is what a lock does for its caller.
func (b *bed) renewFor(h *holding.Holding, d time.Duration) error {
	for {
		sent := time.Now()
		length, busy, ok := h.Extend(&holding.Ref{}, sent, d)
		if busy != nil {
			<-busy
			continue
		}
		if !ok {
			return holding.ErrNotHeld
		}
		b.Update(h)
		r, err := b.Backend.Do(context.Background(), Renewal(h, length))
		b.Renewed(h, sent, fcall.Outcome{Reply: r, Err: err})
		return err
	}
}

// Renewals by hand and automatic ones share a slot: what this process counts on, the server keeps.
func TestRenewalsNeverCross(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		random := rand.New(rand.NewPCG(1, 2))
		h, work, _ := b.hold(b.Context(), &lease.Terms{Length: 3 * time.Second, RenewEvery: 100 * ms, TTL: "3000"})
		for i := range 300 {
			b.server.set(func(s *server) {
				s.took, s.answer = time.Duration(1+random.IntN(150))*ms, nil
				if i%4 == 0 { // they are done, and nobody is told
					s.answer = answers(unreachable)
				}
			})
			var callers sync.WaitGroup
			for _, d := range []time.Duration{2 * time.Second, 30 * time.Second} {
				callers.Go(func() { _ = b.renewFor(h, d) })
			}
			time.Sleep(time.Duration(random.IntN(400)) * ms)
			callers.Wait()
			require.NoError(t, work.Err())
			require.False(t, until(h).After(b.server.seen().until))
		}
		require.False(t, b.server.seen().crossed)
		require.Greater(t, len(b.server.seen().calls), 600, "automatic ones too")
	})
}

// A caller that asks for less counts on less before the server has answered, and after it did not.
func TestLessCountsAtOnce(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		h, work, _ := b.hold(b.Context(), terms)
		b.server.set(func(s *server) { s.silent = true })
		go func() { _ = b.renewFor(h, time.Second) }()
		b.ended(work, time.Second-12*ms, holding.ErrExpired)
		require.Equal(t, "1000", b.server.seen().calls[0].TTL)
		b.server.set(func(s *server) { s.silent = false })
		time.Sleep(24 * time.Hour) // the call of the caller
	})
}

// A lock whose context is over has nobody who works under it: its first renewal after that is the
// last one.
func TestAnAbandonedLockIsGivenBack(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		parent, cancel := context.WithCancel(b.Context())
		h, _, _ := b.hold(parent, terms)
		time.Sleep(12 * time.Second)
		cancel()
		time.Sleep(13*time.Second - 1)
		require.Equal(t, seconds(10, 20), b.server.asked(fcall.Renew))
		require.Empty(t, b.server.asked(fcall.Release), "the grace")
		require.NoError(t, h.Holder().Cause())
		time.Sleep(time.Minute)
		require.Equal(t, 25*time.Second, b.server.asked(fcall.Release)[0])
		require.ErrorIs(t, h.Holder().Cause(), holding.ErrAbandoned)
		require.Len(t, b.server.asked(fcall.Renew), 2)
		require.Equal(t, 1, b.heardNow().gone)
	})
}

func TestLimitsEndTheWork(t *testing.T) {
	for why, limit := range map[error]*lease.Terms{
		holding.ErrMaxHold:     {Length: 30 * time.Second, RenewEvery: 10 * time.Second, Grace: 3 * time.Second, MaxHold: 20 * time.Second},
		holding.ErrMaxRenewals: {Length: 30 * time.Second, RenewEvery: 10 * time.Second, Grace: 3 * time.Second, MaxRenewals: 1},
	} {
		in(t, func(t *testing.T, b *bed) {
			_, work, _ := b.hold(b.Context(), limit)
			b.ended(work, 20*time.Second, why)
			require.Zero(t, b.heardNow().gone, "ours until the grace is over")
			time.Sleep(4 * time.Second)
			require.Equal(t, seconds(23), b.server.asked(fcall.Release))
			require.Len(t, b.heardNow().ends, 1, "the work has ended once")
		})
	}
}

// What is due at one time shares pipelines.
func TestManyRenewalsShareAPipeline(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		const locks = 10_000
		every := &lease.Terms{Length: 3 * time.Second, RenewEvery: time.Second, TTL: "3000"}
		for range locks {
			b.hold(b.Context(), every)
		}
		time.Sleep(1500 * ms)
		require.Len(t, b.server.asked(fcall.Renew), locks)
		require.Len(t, b.server.seen().pipelines, 40)
	})
}

// Locks that are taken and released have the scheduler run once, and not each of them.
func TestShortLocksDoNotWakeTheScheduler(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		pause := func() time.Duration {
			b.Keeper.mu.Lock()
			defer b.Keeper.mu.Unlock()
			return time.Until(b.armed)
		}
		for i := range 100 {
			h, _, _ := b.hold(b.Context(), terms)
			end(h, token, false)
			b.Update(h)
			synctest.Wait()
			require.Equal(t, time.Second-time.Duration(i)*ms, pause(), "it looks when the first would have been due")
			time.Sleep(ms)
		}
		time.Sleep(time.Second)
		require.Greater(t, pause(), time.Hour, "nothing is left")
	})
}

// Whoever asks learns the truth, also before the scheduler had a chance.
func TestCheckEndsALockAfterAPause(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		h, work, _ := b.hold(b.Context(), terms)
		require.NoError(t, b.Check(h.Holder(), time.Now().Add(29*time.Second)))
		require.NoError(t, work.Err())
		require.ErrorIs(t, b.Check(h.Holder(), time.Now().Add(time.Minute)), holding.ErrExpired)
		b.ended(work, 0, holding.ErrExpired)
		require.ErrorIs(t, b.Check(h.Holder(), time.Now()), holding.ErrExpired, "for good")
		synctest.Wait()
		require.Len(t, b.server.asked(fcall.Release), 1)
	})
}

// until is the local deadline.
func until(h *holding.Holding) time.Time {
	at, _ := h.Holder().Stands()
	return at
}

// The server answers a question with replicas when they have what it wrote, or ReplicaWait is over. That is
// waited for, however short the lease.
func TestAQuestionOutlastsItsWaitForReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := answersAfter{time.Second}
		k := New(Config{Backend: late})
		answered := make(chan error, 1)
		k.Ask(&Ride{Call: fcall.Call{Verb: fcall.Wait, Key: "x", Replicas: 1, ReplicaWait: time.Second}, Length: time.Second,
			Answered: func(o fcall.Outcome, _ time.Time) { answered <- o.Err }})
		require.NoError(t, <-answered)
		k.Close(t.Context())
	})
}

// answersAfter is a Backend that answers after a time.
type answersAfter struct{ time.Duration }

func (b answersAfter) Do(context.Context, fcall.Call) (fcall.Reply, error) { panic("not called") }
func (b answersAfter) Version(context.Context) (string, error)             { panic("not called") }
func (b answersAfter) Voting() bool                                        { return false }
func (b answersAfter) Slot(string) uint16                                  { return 0 }

func (b answersAfter) Send(ctx context.Context, calls []fcall.Call) []fcall.Outcome {
	o := make([]fcall.Outcome, len(calls))
	select {
	case <-time.After(b.Duration):
	case <-ctx.Done():
		o[0].Err = ctx.Err()
	}
	return o
}
