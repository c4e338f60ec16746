// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/stretchr/testify/require"
)

// undo begins to undo what an owner may have for that long, and returns what comes of it.
func (b *bed) undo(again bool, length time.Duration) <-chan fcall.Outcome {
	done := make(chan fcall.Outcome, 1)
	b.Undo(&Undo{Key: "lock:job", Owner: "owner", Again: again, Until: time.Now().Add(length), Done: done})
	return done
}

// What was answered is done, unless a call of the owner may run late.
func TestAnUndoIsRepeatedWhileACallMayRunLate(t *testing.T) {
	for again, want := range map[bool][]float64{false: {0}, true: {0, 1.001, 3.002, 10.003, 30.004}} {
		in(t, func(t *testing.T, b *bed) {
			b.server.set(func(s *server) { s.answer = answers(ours, no) })
			done := b.undo(again, time.Minute)
			time.Sleep(time.Hour)
			require.Equal(t, seconds(want...), b.server.asked(fcall.Leave))
			require.True(t, (<-done).Yes, "the first answer")
			require.Empty(t, b.queue)
		})
	}
}

// What a question of the owner may leave is undone behind its answer, also when the client closes: the server
// could be told in the other order. Of a silent server that answer is not waited for as long as Close lasts.
func TestAnUndoGoesBehindAQuestion(t *testing.T) {
	for took, want := range map[time.Duration]float64{200 * ms: 0.2, time.Minute: overWait.Seconds()} {
		in(t, func(t *testing.T, b *bed) {
			var mu sync.Mutex
			b.server.took = took
			ride := &Ride{Call: fcall.Call{Verb: fcall.Wait, Key: "lock:job", Owner: "owner"}, Length: time.Hour,
				Answered: func(fcall.Outcome, time.Time) { mu.Lock(); defer mu.Unlock() }}
			mu.Lock() // of the queue
			b.Ask(ride)
			b.Undo(&Undo{Key: "lock:job", Owner: "owner", Until: time.Now().Add(time.Hour), After: ride})
			mu.Unlock()
			patience, cancel := context.WithTimeout(t.Context(), 2*overWait) // as of Client.Close
			defer cancel()
			b.Close(patience)
			require.InDelta(t, want, b.server.asked(fcall.Leave)[0].Seconds(), 0.01)
		})
	}
}

// A release with what goes behind it ends with the client, as one alone does.
func TestAReleaseWithARideEndsWithTheClient(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		b.server.silent = true
		ride := &Ride{Call: fcall.Call{Verb: fcall.Wait, Key: "lock:job", Owner: "owner"}, Answered: func(fcall.Outcome, time.Time) {}}
		began, over := time.Now(), make(chan error)
		go func() {
			_, err := b.first(context.Background(), fcall.Call{Verb: fcall.Release, Key: "lock:job"}, ride)
			over <- err
		}()
		synctest.Wait()
		closed, cancel := context.WithCancel(t.Context())
		cancel()
		b.Close(closed)
		require.Error(t, <-over)
		require.Less(t, time.Since(began), time.Minute)
	})
}

// There is one backoff, until there is an answer or the lease is over.
func TestAnUndoThatFailsIsTriedAgain(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		b.server.set(func(s *server) { s.answer = answers(unreachable) })
		done := b.undo(true, time.Hour)
		time.Sleep(2 * time.Hour)
		tries := b.server.asked(fcall.Leave)
		pause := 5 * ms
		for i := range 30 {
			require.Equal(t, pause+ms, tries[i+1]-tries[i])
			pause = min(2*pause, lastPause)
		}
		require.InDelta(t, float64(time.Hour), float64(tries[len(tries)-1]), float64(lastPause+ms), "until the lease is over")
		require.ErrorIs(t, (<-done).Err, fcall.ErrUnreachable)
		require.Empty(t, b.queue)
	})
	in(t, func(t *testing.T, b *bed) { // an answer that was lost counts as done
		b.server.set(func(s *server) { s.answer = answers(unreachable, no) })
		done := b.undo(false, time.Hour)
		require.True(t, (<-done).Yes)
		require.Len(t, b.server.asked(fcall.Leave), 2)
	})
	in(t, func(t *testing.T, b *bed) { // who waits hears what a majority says, and the rest is tried again
		most := fcall.Outcome{Reply: fcall.Reply{Yes: true, Spent: true}}
		b.server.set(func(s *server) { s.answer = answers(unreachable, most, most, ours) })
		done := b.undo(false, time.Hour)
		require.True(t, (<-done).Yes)
		require.Len(t, b.server.asked(fcall.Leave), 2)
		time.Sleep(time.Hour)
		require.Len(t, b.server.asked(fcall.Leave), 4)
		require.Empty(t, b.queue)
	})
	in(t, func(t *testing.T, b *bed) { // nothing of it can be left, as far as this process knows: once
		b.server.set(func(s *server) { s.answer = answers(unreachable) })
		b.undo(true, -1)
		time.Sleep(time.Hour)
		require.Len(t, b.server.asked(fcall.Leave), 1)
	})
}

// Locks end without being released when the client closes; what nobody got is undone once.
func TestClose(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		h, work, _ := b.hold(b.Context(), terms)
		b.server.set(func(s *server) { s.took = 100 * ms })
		b.undo(true, time.Minute)
		b.Close(b.Context())
		b.ended(work, 100*ms, errClosed)
		require.Empty(t, b.server.asked(fcall.Release))
		require.Len(t, b.server.asked(fcall.Leave), 1, "nobody waits for the repetitions")
		require.ErrorIs(t, h.Holder().Cause(), errClosed)
		require.False(t, b.Add(h))
		require.ErrorIs(t, (<-b.undo(false, time.Minute)).Err, errClosed)
	})
	in(t, func(t *testing.T, b *bed) {
		b.server.set(func(s *server) { s.silent = true })
		b.undo(false, time.Minute)
		patience, cancel := context.WithTimeout(b.Context(), 100*ms)
		defer cancel()
		b.Close(patience)
		require.Equal(t, 100*ms, time.Since(b.server.began))
		require.Len(t, b.server.asked(fcall.Leave), 1)
	})
	in(t, func(t *testing.T, b *bed) { // what is only repeated is not waited for at all
		b.undo(true, time.Minute)
		time.Sleep(500 * ms)
		b.Close(b.Context())
		require.Equal(t, 500*ms, time.Since(b.server.began))
	})
}

// release gives back what hold has, as the last holder.
func (b *bed) release(ctx context.Context, h *holding.Holding, ref *holding.Ref) error {
	last, _, _ := h.Holder().Leave(ref)
	require.True(b, last)
	return b.Release(ctx, h, token, nil)
}

func TestRelease(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []fcall.Outcome
		want    error
		text    string
		calls   int // in an hour
	}{
		{"yes", []fcall.Outcome{ours}, nil, "", 1},
		{"not ours", []fcall.Outcome{no}, holding.ErrTaken, `: ""`, 5},
		{"broken", []fcall.Outcome{{Reply: fcall.Reply{Why: functions.WhyBroken, Reason: "stuck"}}}, holding.ErrBroken, `: "stuck"`, 5},
		{"the reply was lost", []fcall.Outcome{unreachable, no}, nil, "", 6},
		{"two were", []fcall.Outcome{unreachable, unreachable, no}, nil, "", 7},
		{"not sent, and not ours", []fcall.Outcome{{Err: fcall.NotConnected(errors.New("refused"))}, no}, holding.ErrTaken, "", 6},
		{"refused by an ACL", []fcall.Outcome{{Err: fcall.ErrDenied}, ours}, fcall.ErrDenied, "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			in(t, func(t *testing.T, b *bed) {
				h, _, ref := b.hold(b.Context(), terms)
				freed := false
				h.Finally(func() { freed = true })
				b.server.set(func(s *server) { s.answer = answers(c.answers...) })
				err := b.release(b.Context(), h, ref)
				require.True(t, freed)
				require.Empty(t, b.Owned("lock:job", ""))
				if c.want == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, c.want)
					require.Contains(t, err.Error(), c.text)
				}
				require.Less(t, time.Since(b.server.began), time.Second/10)
				time.Sleep(time.Hour)
				require.Len(t, b.server.asked(fcall.Release), c.calls)
				require.Empty(t, b.server.asked(fcall.Renew))
				require.Empty(t, b.queue)
			})
		})
	}
}

// A Release that waits for the Undo hears when the client closes.
func TestCloseEndsARelease(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		h, _, ref := b.hold(b.Context(), terms)
		b.server.set(func(s *server) { s.answer = answers(unreachable) })
		released := make(chan error, 1)
		go func() { released <- b.release(context.Background(), h, ref) }()
		time.Sleep(3 * time.Second) // the next try is a moment away
		b.Close(b.Context())
		require.ErrorIs(t, <-released, fcall.ErrUnreachable)
	})
	in(t, func(t *testing.T, b *bed) {
		h, _, ref := b.hold(b.Context(), terms)
		b.server.set(func(s *server) { s.answer = answers(unreachable) })
		released := make(chan error, 1)
		go func() { released <- b.release(context.Background(), h, ref) }()
		time.Sleep(3 * time.Second)
		over, cancel := context.WithCancel(context.Background())
		cancel()
		b.Close(over)
		require.ErrorIs(t, <-released, fcall.ErrUnreachable)
	})
}

// A context that is over already still releases, and waits for a moment.
func TestReleaseWithAContextThatIsOver(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	in(t, func(t *testing.T, b *bed) {
		h, _, ref := b.hold(b.Context(), terms)
		require.NoError(t, b.release(over, h, ref))
		require.Len(t, b.server.asked(fcall.Release), 1)
	})
	in(t, func(t *testing.T, b *bed) {
		h, _, ref := b.hold(b.Context(), terms)
		b.server.set(func(s *server) { s.silent = true })
		require.Error(t, b.release(over, h, ref))
		require.Equal(t, overWait, time.Since(b.server.began))
	})
}

// Release blocks until its context ends or the lease does; the Undo goes on.
func TestReleaseAtASilentServer(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		h, _, ref := b.hold(b.Context(), terms)
		b.server.set(func(s *server) { s.silent = true })
		ctx, cancel := context.WithTimeout(b.Context(), 2*time.Second)
		defer cancel()
		require.ErrorIs(t, b.release(ctx, h, ref), fcall.ErrUnreachable)
		require.Equal(t, 2*time.Second, time.Since(b.server.began))
		b.server.set(func(s *server) { s.silent = false })
		time.Sleep(time.Minute)
		require.Len(t, b.server.asked(fcall.Release), 2)
	})
	for slow, want := range map[time.Duration]error{-ms: nil, time.Minute: fcall.ErrUnreachable} { // its caller leaves after a second
		in(t, func(t *testing.T, b *bed) {
			h, _, ref := b.hold(b.Context(), terms)
			b.server.set(func(s *server) { s.silent = true })
			ctx, cancel := context.WithCancel(b.Context())
			time.AfterFunc(time.Second, cancel)
			time.AfterFunc(time.Second+slow, func() { b.server.set(func(s *server) { s.silent = false }) })
			require.ErrorIs(t, b.release(ctx, h, ref), want)
			require.LessOrEqual(t, time.Since(b.server.began), time.Second+overWait)
		})
	}
	in(t, func(t *testing.T, b *bed) {
		short := *terms
		short.Length, short.RenewEvery = 10*time.Second, 0
		h, _, ref := b.hold(b.Context(), &short)
		b.server.set(func(s *server) { s.silent = true })
		require.Error(t, b.release(b.Context(), h, ref))
		synctest.Wait()
		require.Equal(t, 10*time.Second-102*ms, time.Since(b.server.began), "the lease is over")
	})
}

// Whoever waits for the end of a lock that is given back in the background, and closes then, finds what
// is to be given back.
func TestCloseAtTheEndOfALockGivesItBack(t *testing.T) {
	in(t, func(t *testing.T, b *bed) {
		limited := *terms
		limited.MaxHold = 20 * time.Second
		h, _, _ := b.hold(b.Context(), &limited)
		closed := make(chan struct{})
		h.Finally(func() {
			go func() {
				b.Close(context.Background())
				close(closed)
			}()
			time.Sleep(ms)
		})
		<-closed
		require.Len(t, b.server.asked(fcall.Release), 1)
	})
}
