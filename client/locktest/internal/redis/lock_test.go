// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// The deadline of one call is not that of others which are on their way behind it.
func TestADeadlineOfOneCallIsNotAnothers(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := bed.Loaded(t, w, "a:1")
		opt := bed.Single(w, "h", "a:1")
		opt.DisableCache = true
		c := bed.Open(t, opt, client.Config{})
		require.NoError(t, bed.Must(c.TryAcquire(ctx, "x")).Release(ctx))
		n.Pause()
		try := func(ctx context.Context, name string) <-chan error {
			got := make(chan error, 1)
			go func() {
				_, err := c.TryAcquire(ctx, name)
				got <- err
			}()
			return got
		}
		soon, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		first := try(soon, "x")
		time.Sleep(100 * time.Millisecond)
		second := try(ctx, "y")
		require.ErrorIs(t, <-first, client.ErrUnreachable)
		n.Continue()
		require.NoError(t, <-second)
	})
}

// A renewal whose answer comes when the lease is over here does not say that the lock is held.
func TestRenewOfALockThatIsLostMeanwhileFails(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := bed.Loaded(t, w, "a:1")
		c := open(t, w, "client", "a:1")
		l := bed.Must(c.Acquire(ctx, "x", client.WithLease(time.Second), client.WithoutRenewal()))
		time.Sleep(500 * time.Millisecond)
		w.Stall(redis.Path{Node: n}, redis.Both)
		time.AfterFunc(2*time.Second, func() { w.Resume(redis.Path{Node: n}) })
		require.ErrorIs(t, l.Renew(ctx), client.ErrExpired)
	})
}

// Who has asked often, because it could not be notified, does not ask seldom once it can: a dead one before it
// costs its provisional lease and a pause, and no more.
func TestWhoHasPolledDoesNotAskSeldom(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := bed.Loaded(t, w, "a:1")
		n.Refuse(func(cmd []string) redis.Error {
			if cmd[0] == "SSUBSCRIBE" {
				return "LOADING for a moment"
			}
			return ""
		})
		n.Do("FCALL", functions.Acquire, "1", "lock:x", "holder", "30000")
		n.Do("FCALL", functions.Wait, "1", "lock:x", "dead", "1000")
		got := bed.Waits(t, open(t, w, "client", "a:1"), "x", nil)
		time.Sleep(600 * time.Millisecond)
		n.Refuse(nil)
		time.Sleep(300 * time.Millisecond)
		n.Do("FCALL", functions.Release, "1", "lock:x", "holder")
		released := time.Now()
		_ = bed.Must((<-got), nil).Release(ctx)
		require.Less(t, time.Since(released), 3*time.Second)
	})
}

// A grant that was heard while the server could not be asked is older than what the server answers
// then: also when its token is higher than that of the holder whom the server names, because the
// server has lost its memory of the grant.
func TestAGrantHeardBeforeTheQuestionIsOlderThanItsAnswer(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := bed.Loaded(t, w, "a:1")
		a, b := open(t, w, "a", "a:1"), open(t, w, "b", "a:1")
		l := bed.Must(a.Acquire(ctx, "x"))
		got := make(chan error)
		waiting, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		go func() { _, err := b.Acquire(waiting, "x"); got <- err }()
		time.Sleep(500 * time.Millisecond)
		n.Save()
		w.Stall(redis.Path{Host: "b"}, redis.ToServer)
		time.Sleep(2 * time.Second) // it has asked again meanwhile
		require.NoError(t, l.Release(ctx))
		time.Sleep(10 * time.Millisecond) // it has heard of that
		n.Restart(redis.FromSave)
		w.Drop(redis.Path{Host: "b"})
		require.Error(t, <-got, "it has the lock, and the server says that it is another's")
	})
}

// The key of a lock with a run of tokens is deleted, and the clock set back, by much or by less than the
// run: the next token is above those of the run that may have been used. A step of less than a run that
// comes before any other call is not noticed by the server.
func TestTokensGrowAfterADeletedRunAndAStepBack(t *testing.T) {
	type step struct {
		back   time.Duration
		looked bool
	}
	bed.Each(t, map[string]step{
		"a step": {9 * time.Second, false}, "a step that a call notices": {9 * time.Second, true},
		"less than a run": {300 * time.Microsecond, true},
	}, func(t *testing.T, w *redis.World, s step) {
		n := bed.Loaded(t, w, "a:1")
		acquire := func(owner string) int64 {
			return n.Do("FCALL", functions.Acquire, "1", "k", owner, "30000", functions.OptTokens, "1000").([]any)[1].(int64)
		}
		first := acquire("a")
		time.Sleep(600 * time.Microsecond)
		if s.looked {
			n.Do("FCALL_RO", functions.Inspect, "1", "k")
		}
		n.Do("DEL", "k")
		n.SetClock(-s.back, 0)
		require.GreaterOrEqual(t, acquire("b"), first+600)
	})
}

// Who waits for a short lease hears the answers of a server that is far away.
func TestAShortLeaseIsWaitedForFromFarAway(t *testing.T) {
	bed.In(t, redis.Options{Latency: 20 * time.Millisecond}, func(t *testing.T, w *redis.World) {
		bed.Loaded(t, w, "a:1")
		c := bed.Open(t, bed.Single(w, "h", "a:1"), client.Config{})
		other := bed.Open(t, bed.Single(w, "other", "a:1"), client.Config{})
		held, err := other.Acquire(ctx, "x")
		require.NoError(t, err)
		time.AfterFunc(time.Minute, func() { _ = held.Release(ctx) })
		_, err = c.Acquire(ctx, "x", client.WithLease(150*time.Millisecond), client.WithoutRenewal())
		require.NoError(t, err)
	})
}

// Where each answer takes a quarter of the lease, a lock is held, and waited for, all the same; also where
// connections break after minutes without trouble.
func TestASlowServer(t *testing.T) {
	t.Parallel()
	bed.In(t, redis.Options{Latency: 200 * time.Millisecond}, func(t *testing.T, w *redis.World) {
		n, cfg := bed.Loaded(t, w, "s:6379"), client.Config{Lease: 2 * time.Second}
		a, b := bed.Open(t, bed.Single(w, "a", n.Addr()), cfg), bed.Open(t, bed.Single(w, "b", n.Addr()), cfg)
		l := bed.Must(a.Acquire(ctx, "x"))
		next := bed.Waits(t, b, "x", nil)
		for range 5 {
			time.Sleep(time.Minute)
			w.Reset(redis.Path{Host: "b"})
		}
		require.Empty(t, next)
		require.NoError(t, l.Release(ctx))
		got := <-next
		require.NotNil(t, got)
		time.Sleep(time.Minute)
		require.NoError(t, got.Release(ctx))
	})
}

// The key keeps a lock from others until MinHold is over, to the millisecond, whatever becomes of the
// process that had it, and of the server's primary.
func TestTheKeyKeepsTheMinimum(t *testing.T) {
	const minHold = 2 * time.Minute
	silent := redis.Path{Host: "client"}
	type end func(t *testing.T, w *redis.World, n *redis.Node, l *client.Lock)
	unheard := func(way redis.Direction) end {
		return func(t *testing.T, w *redis.World, _ *redis.Node, l *client.Lock) {
			w.Stall(silent, way)
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			require.ErrorIs(t, l.Release(short), client.ErrUnreachable)
			if way == redis.ToClient {
				w.Resume(silent) // it is released again
			}
		}
	}
	ends := map[string]end{
		"released": func(t *testing.T, _ *redis.World, _ *redis.Node, l *client.Lock) { require.NoError(t, l.Release(ctx)) },
		"the process dies": func(_ *testing.T, w *redis.World, _ *redis.Node, _ *client.Lock) {
			w.Stall(silent, redis.Both)
		},
		"the server does not hear of the release": unheard(redis.Both),
		"the answer to the release is lost":       unheard(redis.ToClient),
		"the library is loaded again": func(t *testing.T, _ *redis.World, n *redis.Node, l *client.Lock) {
			require.NoError(t, l.Release(ctx))
			bed.Load(t, n)
		},
	}
	for _, handedOver := range []bool{false, true} {
		t.Run(fmt.Sprint("after a wait: ", handedOver), func(t *testing.T) {
			bed.Each(t, ends, func(t *testing.T, w *redis.World, end end) {
				n := bed.Loaded(t, w, "a:1")
				c, other := open(t, w, "client", "a:1"), open(t, w, "other", "a:1")
				defer w.Resume(silent)
				if handedOver {
					before := bed.Must(other.Acquire(ctx, "x"))
					time.AfterFunc(time.Second, func() { _ = before.Release(ctx) })
				}
				l := bed.Must(c.Acquire(ctx, "x", client.WithMinHold(minHold)))
				granted := time.UnixMicro(l.Fence())
				time.Sleep(time.Second)
				end(t, w, n, l)
				next := bed.Must(other.Acquire(ctx, "x"))
				kept := time.UnixMicro(next.Fence()).Sub(granted)
				require.GreaterOrEqual(t, kept, minHold)
				require.Less(t, kept, minHold+50*time.Millisecond)
			})
		})
	}
}
