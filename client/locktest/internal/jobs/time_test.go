// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// Also where the server does not tell of the lease's end, because nobody has looked at the key.
func TestABusyAnswerIsNotBelievedBeyondTheLease(t *testing.T) {
	t.Parallel()
	counted(t, func(t *testing.T, w *redis.World, n *redis.Node, _ func(string) int) {
		n.Do("DEBUG", "SET-ACTIVE-EXPIRE", "0")
		const lease = 400 * time.Millisecond
		c := bed.Open(t, bed.Single(w, "a", n.Addr()), client.Config{})
		n.Do("FCALL", functions.Acquire, "1", "lock:x", "another", "400")
		for range 3 { // until the answer comes from memory
			_, err := c.TryAcquire(ctx, "x")
			require.ErrorIs(t, err, client.ErrBusy)
		}
		time.Sleep(lease)
		require.NoError(t, c.TryDo(ctx, "x", nothing))
	})
}

// What is reported is the whole wait, in memory and in the server's line.
func TestAWaitIsReportedWhole(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		holding(t, s.Client(client.Config{Label: "holder"}), "x")
		c, leader := s.Client(client.Config{MaxWait: 3 * time.Second}), make(chan error, 1)
		go func() {
			_, err := c.Acquire(ctx, "x", client.WithMaxWait(2*time.Second))
			leader <- err
		}()
		queued(s, "x", 1)
		_, err := c.Acquire(ctx, "x")
		require.ErrorIs(t, <-leader, client.ErrTimeout)
		require.Equal(t, []string{"timeout"}, bed.Kinds(err))
		require.NotErrorIs(t, err, context.DeadlineExceeded, "MaxWait is no deadline of the caller's")
		require.ErrorContains(t, err, "holder", "and by whom")
		var stopped *client.WaitError
		require.ErrorAs(t, err, &stopped)
		require.Equal(t, 3*time.Second, stopped.Waited)
		queued(s, "x", 0)
	})
}

// Who waits here was handed the lock, and the key is gone before that is confirmed: nobody is said to have it.
func TestATryWhileAHandOverFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c := s.Client(client.Config{})
		give := s.Take("x", time.Hour)
		got := waits(s, c, "x", 1, client.WithoutRenewal())
		time.Sleep(2 * time.Second)
		give()
		s.Delete("x")
		for l := (*client.Lock)(nil); l == nil; time.Sleep(20 * time.Microsecond) {
			_, err := c.TryAcquire(ctx, "x")
			var busy *client.BusyError
			require.ErrorAs(t, err, &busy)
			require.Contains(t, []string{functions.WhyHeld, functions.WhyServing}, busy.Why, err)
			select {
			case l = <-got:
			default:
			}
		}
	})
}

// The first of many whose MaxWait is over fails those behind it, before their own timers have said why.
func TestMaxWaitIsNoDeadlineOfACrowd(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c := s.Client(client.Config{MaxWait: time.Second})
		defer s.Take("x", time.Hour)()
		var crowd sync.WaitGroup
		for range 10 {
			for range 200 {
				crowd.Go(func() {
					_, err := c.Acquire(ctx, "x")
					assert.ErrorIs(t, err, client.ErrTimeout)
					assert.NotErrorIs(t, err, context.DeadlineExceeded)
				})
			}
			crowd.Wait()
		}
	})
}

// The server learns from hand-overs how long a turn takes. Who would wait in vain does not stand in line.
func TestGiveUpEarly(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		cfg := client.Config{GiveUpEarly: true}
		c, second, other := s.Client(cfg), s.Client(cfg), s.Client(cfg)
		l := holding(t, c, "x")
		next, third := waits(s, second, "x", 1), waits(s, other, "x", 2)
		time.Sleep(6 * time.Second)
		require.NoError(t, l.Release(ctx))
		l = <-next
		_, err := c.Acquire(ctx, "x", client.WithMaxWait(4500*time.Millisecond))
		require.Equal(t, []string{"busy"}, bed.Kinds(err), "it did not wait")
		require.ErrorContains(t, err, "too late")
		var stopped *client.WaitError
		require.ErrorAs(t, err, &stopped)
		require.Equal(t, 1, stopped.Last.Waiters)
		queued(s, "x", 1)
		// The deadline of the patient is beyond what a Duration can count.
		far, cancel := context.WithDeadline(ctx, time.Now().AddDate(400, 0, 0))
		defer cancel()
		patient := make(chan error)
		go func() { patient <- c.Do(far, "x", nothing) }()
		queued(s, "x", 2)
		require.NoError(t, l.Release(ctx))
		require.NoError(t, (<-third).Release(ctx))
		require.NoError(t, <-patient)
	})
}

func TestPolling(t *testing.T) {
	t.Parallel()
	counted(t, func(t *testing.T, w *redis.World, n *redis.Node, calls func(string) int) {
		c := bed.Open(t, bed.Single(w, "a", n.Addr()), client.Config{})
		n.Do("FCALL", functions.Acquire, "1", "lock:x", "by hand", "600000")
		before, err := calls(functions.Acquire), error(nil)
		spend(t, 40*time.Millisecond, 50*time.Millisecond, func() { _, err = c.Acquire(ctx, "x", client.WithPolling(3, 20*time.Millisecond)) })
		require.Equal(t, []string{"busy"}, bed.Kinds(err), "its tries are used up")
		var stopped *client.WaitError
		require.ErrorAs(t, err, &stopped)
		require.Zero(t, stopped.Position, "not in line")
		require.ErrorContains(t, err, "3 tries")
		require.Equal(t, 3, calls(functions.Acquire)-before)
		_, err = c.Acquire(ctx, "x", client.WithPolling(1, time.Hour))
		require.Equal(t, []string{"busy"}, bed.Kinds(err), "one try has no interval")
		_, err = c.Acquire(ctx, "x", client.WithPolling(1000, time.Hour), client.WithMaxWait(2*time.Second))
		require.Equal(t, []string{"timeout"}, bed.Kinds(err))
	})
}

// The server does not tell a client of its own renewals: what it keeps of its own lock must not grow old.
func TestInspectCachedOfAnOwnLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		const lease = 6 * time.Second
		c := s.Client(client.Config{Lease: lease, RenewEvery: 300 * time.Millisecond})
		l := holding(t, c, "x")
		for range 750 {
			info, err := c.InspectCached(ctx, "x")
			require.NoError(t, err)
			require.True(t, info.Held)
			require.Greater(t, info.Remaining, lease/4)
			time.Sleep(10 * time.Millisecond)
		}
		require.NoError(t, l.Release(ctx))
		info, err := c.InspectCached(ctx, "x")
		require.NoError(t, err)
		require.False(t, info.Held, "its release is known at once")
	})
}

// A wait whose context ends at the moment of the grant is one too.
func TestAWaitEndsAtItsGrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c := s.Client(client.Config{})
		for _, polling := range []client.Option{nil, client.WithPolling(3, time.Second)} {
			for _, apart := range []bool{false, true} {
				cause := errors.New("enough")
				work, cancel := context.WithCancelCause(ctx)
				ends := second{work, new(int), func() { cancel(cause) }}
				waits, opt := context.Context(ends), polling
				if apart {
					waits, opt = ctx, client.WithOptions(polling, client.WithLockContext(ends))
				}
				_, err := c.Acquire(waits, "x", opt)
				var stopped *client.WaitError
				require.ErrorAs(t, err, &stopped)
				require.ErrorIs(t, stopped.Err, context.Canceled)
				require.ErrorContains(t, err, cause.Error())
				freed(s, "x")
			}
		}
	})
}

// What is said of a lock from memory is what the server says: of one that this process holds, and of one that is
// kept by a minimum.
func TestWhatIsSaidFromMemory(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c := s.Client(client.Config{})
		l := holding(t, c, "x", client.WithMinHold(5*time.Second))
		for range 3 {
			go func() { _, _ = c.Acquire(ctx, "x", client.WithMaxWait(time.Second)) }()
		}
		queued(s, "x", 0)
		synctest.Wait()
		_, err := c.TryAcquire(ctx, "x")
		var busy *client.BusyError
		require.ErrorAs(t, err, &busy)
		require.Equal(t, "held", busy.Why)
		require.Zero(t, busy.Waiters, "none of them is in the server's line")
		time.Sleep(2 * time.Second)
		require.NoError(t, l.Release(ctx))
		for _, why := range []string{"kept", "free"} {
			info, err := c.InspectCached(ctx, "x")
			require.NoError(t, err)
			require.Equal(t, why, info.Why)
			time.Sleep(4 * time.Second)
		}
	})
}

func TestEveryHolderHasItsOwnMaximum(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		const most = 10 * time.Second
		c, limit, next := s.Client(client.Config{}), client.WithMaxHold(most, most), make(chan *client.Lock)
		l := holding(t, c, "x", limit)
		for range 2 {
			go func() { next <- holding(t, c, "x", limit) }()
		}
		synctest.Wait()
		for range 2 {
			time.Sleep(most / 2)
			require.NoError(t, l.Release(ctx))
			l = <-next
		}
		spend(t, most-time.Millisecond, most+time.Millisecond, func() { <-l.Context().Done() })
		require.ErrorIs(t, context.Cause(l.Context()), client.ErrMaxHold)
		require.ErrorIs(t, l.Release(ctx), client.ErrMaxHold)
		freed(s, "x")
	})
}

// What a joinable owner got is confirmed if a ReleaseOwner crosses it: within MaxWait too.
func TestAConfirmationEndsWithTheWait(t *testing.T) {
	t.Parallel()
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := bed.Loaded(t, w, "s:6379")
		c := bed.Open(t, bed.Single(w, "h", n.Addr()), client.Config{})
		_, err := c.Inspect(ctx, "a")
		require.NoError(t, err)
		w.Delay(redis.Path{Node: n}, 150*time.Millisecond)
		time.AfterFunc(time.Millisecond, func() { _ = c.ReleaseOwner(ctx, "a", "job 7") })
		spend(t, 400*time.Millisecond, 410*time.Millisecond, func() {
			_, err = c.Acquire(ctx, "a", client.WithOwner("job 7"), client.WithMaxWait(400*time.Millisecond))
			require.ErrorIs(t, err, client.ErrTimeout)
		})
	})
}

// A lock is renewed by hand when its context has ended, and its holder has not released it yet.
func TestARenewalInTheGrace(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		work, cancel := context.WithCancel(ctx)
		l, err := s.Client(client.Config{}).Acquire(work, "x", client.WithMaxHold(0, time.Minute))
		require.NoError(t, err)
		cancel()
		time.Sleep(15 * time.Second) // it was given its grace at a renewal
		require.Positive(t, l.Remaining())
		require.NotErrorIs(t, l.Renew(ctx), client.ErrNotHeld)
		require.NoError(t, l.Release(ctx))
	})
}

// A renewal by hand that waits for another one does nothing to the lock of a goroutine that it was passed on to
// meanwhile.
func TestARenewalCrossesAPass(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c, other := s.Client(client.Config{}), s.Client(client.Config{})
		first := holding(t, other, "x")
		got := make(chan *client.Lock)
		for range 2 {
			go func() {
				l, err := c.Acquire(ctx, "x")
				require.NoError(t, err)
				got <- l
			}()
			time.Sleep(time.Second)
		}
		time.Sleep(5 * time.Second) // it is asked for a run by now
		require.NoError(t, first.Release(ctx))
		a := <-got
		s.Pause()
		renewed, shortened := make(chan error, 1), make(chan error, 1)
		go func() { renewed <- a.Renew(ctx) }()
		time.Sleep(300 * time.Microsecond)
		go func() { shortened <- a.RenewFor(ctx, 50*time.Millisecond) }()
		time.Sleep(300 * time.Microsecond)
		require.NoError(t, a.Release(ctx))
		b := <-got
		require.Equal(t, a.Fence()+1, b.Fence(), "it was passed on")
		s.Resume()
		<-renewed
		require.ErrorIs(t, <-shortened, client.ErrNotHeld)
		require.Greater(t, b.Remaining(), time.Second)
		require.NoError(t, b.Release(ctx))
	})
}

// A lock that was renewed by hand, and one of whose owner another hold was released, learns at once that its key is
// gone, as any that is held for a second.
func TestADeletionIsNoticedAfterACallForTheLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c := s.Client(client.Config{})
		renewed, one, more := holding(t, c, "x"), holding(t, c, "y", client.WithOwner("o")), holding(t, c, "y", client.WithOwner("o"))
		time.Sleep(2 * time.Second)
		require.NoError(t, renewed.Renew(ctx))
		require.NoError(t, more.Release(ctx))
		time.Sleep(2 * time.Second)
		for name, l := range map[string]*client.Lock{"x": renewed, "y": one} {
			s.Delete(name)
			spend(t, 0, time.Second, func() { <-l.Context().Done() })
		}
	})
}

// That too few replicas have a lock is told to those who asked for replicas, and to nobody behind them.
func TestWhoAsksForNoReplicasIsNotToldOfThem(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{3 * time.Second, 3020 * time.Millisecond, 3500 * time.Millisecond, 20 * time.Second} {
		bubble(t, func(t *testing.T, s *locktest.Server) {
			l, c, first := holding(t, s.Client(client.Config{}), "x"), s.Client(client.Config{}), make(chan error, 1)
			replicas := client.WithReplicas(1, time.Second)
			go func() { first <- c.Do(ctx, "x", nothing, client.WithMaxWait(10*time.Second), replicas) }()
			queued(s, "x", 1)
			time.AfterFunc(time.Second, func() { require.NoError(t, l.Release(ctx)) })
			err := c.Do(ctx, "x", nothing, client.WithMaxWait(wait))
			require.Equal(t, wait > 10*time.Second, err == nil, err)
			require.NotErrorIs(t, err, client.ErrNotReplicated)
			require.ErrorIs(t, <-first, client.ErrNotReplicated)
		})
	}
}

// A message of a hand-over that comes after the whole life of the lock, whose release the server has not heard yet,
// costs no minimum.
func TestALateMessageKeepsTheMinimum(t *testing.T) {
	t.Parallel()
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := bed.Loaded(t, w, "s:6379")
		c, other := bed.Open(t, bed.Single(w, "a", n.Addr()), client.Config{}), bed.Open(t, bed.Single(w, "b", n.Addr()), client.Config{})
		before := holding(t, other, "x")
		got := bed.Waits(t, c, "x", nil, client.WithMinHold(time.Hour))
		time.Sleep(time.Second)
		require.NoError(t, before.Release(ctx))
		l := <-got
		n.Refuse(func(cmd []string) redis.Error {
			if len(cmd) > 1 && cmd[1] == functions.Release {
				return "LOADING Redis is loading the dataset in memory"
			}
			return ""
		})
		brief, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.Release(brief), client.ErrUnreachable)
		message := fmt.Sprintf("%d %d 1 %d %s lock:x", l.Fence(), time.Now().UnixMilli(), len(l.Owner()), l.Owner())
		publish := other.Redis().B().Spublish().Channel("lock:inbox:" + strings.Split(l.Owner(), ":")[2]).Message(message).Build()
		heard, err := other.Redis().Do(ctx, publish).AsInt64()
		require.NoError(t, err)
		require.EqualValues(t, 1, heard)
		time.Sleep(time.Second)
		n.Refuse(nil)
		time.Sleep(10 * time.Second)
		info, err := other.Inspect(ctx, "x")
		require.NoError(t, err)
		require.Equal(t, functions.WhyKept, info.Why)
	})
}
