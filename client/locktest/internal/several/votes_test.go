// SPDX-License-Identifier: Apache-2.0

package several

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// A key that is deleted at a minority is written again, a lease later, with the token: also where the clock
// is behind.
func TestAKeyIsDeletedAtAMinority(t *testing.T) {
	on(t, 5, func(b *several) {
		b.nodes[0].SetClock(-3*lease, 0)
		l := b.hold(b.client(client.Config{}), "x")
		for _, n := range b.nodes[:2] {
			n.Do("DEL", "lock:x")
		}
		time.Sleep(2 * lease)
		assert.NoError(b, l.Context().Err())
		assert.Equal(b, 5, b.votes("x", l.Owner()))
		assert.Equal(b, strconv.FormatInt(l.Fence(), 10), b.nodes[0].Hash("lock:x")["fence"])
		for _, n := range b.nodes[1:4] {
			n.Do("DEL", "lock:x")
		}
		time.Sleep(lease)
		assert.ErrorIs(b, context.Cause(l.Context()), client.ErrTaken)
	})
}

// A server that loses the key while its holder counts on it, and one that the holder has no vote of,
// are a majority of three. So the next one can have the lock until the first one's renewals fail: the
// model's shortest way to two holders. A holder that all have voted for is not concerned.
func TestAKeyIsLostThatTheHolderCountsOn(t *testing.T) {
	for name, loses := range map[string]func(n *redis.Node){
		"deleted":              func(n *redis.Node) { n.Do("DEL", "lock:x") },
		"the clock is stepped": func(n *redis.Node) { n.SetClock(lease+time.Second, 0) },
	} {
		for _, missing := range []bool{true, false} {
			on(t, 3, func(b *several) {
				holder, other := b.two()
				if missing {
					path := redis.Path{Host: "h1", Node: b.from("x", 1)}
					b.world.Stall(path, redis.Both)
					defer b.world.Resume(path)
				}
				l := b.hold(holder, "x")
				loses(b.from("x", 0))
				m, err := other.TryAcquire(b.Context(), "x")
				if !missing {
					require.ErrorIs(b, err, client.ErrBusy, name)
					b.release(l)
					return
				}
				require.NoError(b, err, name)
				require.NoError(b, l.Context().Err(), "two holders")
				assert.Greater(b, m.Fence(), l.Fence())
				select {
				case <-l.Context().Done():
				case <-time.After(lease):
					b.Error("the first holder has not learned of it within a lease")
				}
				assert.NoError(b, m.Context().Err())
				b.release(m)
			})
		}
	}
}

// A holder that lost a majority works until it hears of that: what it still has must keep others out
// until then.
func TestVotesAreKeptUntilTheContextEnds(t *testing.T) {
	on(t, 3, func(b *several) {
		l := b.hold(b.client(client.Config{}), "x")
		for _, n := range b.nodes[1:] {
			require.Equal(b, int64(1), n.Do("DEL", "lock:x"))
		}
		renewed := make(chan error)
		go func() { renewed <- l.Renew(b.Context()) }()
		for b.votes("x", l.Owner()) > 0 {
			time.Sleep(10 * time.Microsecond)
		}
		select {
		case <-l.Context().Done():
		default:
			assert.Fail(b, "the context is alive after the last vote was given back")
		}
		assert.ErrorIs(b, <-renewed, client.ErrLost)
	})
}

// A server votes after the caller has gone: the vote is given back as soon as it comes.
func TestAVoteThatComesLateIsGivenBack(t *testing.T) {
	on(t, 3, func(b *several) {
		c := b.client(client.Config{})
		b.world.Delay(redis.Path{Node: b.nodes[2]}, 3*time.Second)
		l, err := c.TryAcquire(b.Context(), "x")
		require.NoError(b, err)
		b.release(l)
		time.Sleep(12 * time.Second) // there and back twice; by itself its lease ends after 13 s
		assert.Zero(b, b.votes("x", l.Owner()))
		b.world.Delay(redis.Path{}, time.Second)
		ctx, cancel := context.WithTimeout(b.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err = c.Acquire(ctx, "y") // its votes are on their way
		assert.Contains(b, [][]string{{"unreachable"}, {"timeout"}}, bed.Kinds(err), "%v", err)
		time.Sleep(5 * time.Second)
		for _, n := range b.nodes {
			assert.Empty(b, n.Hash("lock:y"))
		}
	})
}

// A free lock is had in one round trip, and given back in another one: all servers are asked at once.
// One that has been silent for a moment costs no time: neither for a lock nor for its release.
func TestNobodyWaitsForASilentServer(t *testing.T) {
	on(t, 5, func(b *several) {
		c := b.client(client.Config{})
		pair := func() time.Duration {
			began := time.Now()
			l, err := c.Acquire(b.Context(), "x")
			require.NoError(b, err)
			b.release(l)
			return time.Since(began)
		}
		pair()
		const way = 7 * time.Millisecond
		b.world.Delay(redis.Path{}, way)
		require.Less(b, pair(), 5*way)
		b.world.Delay(redis.Path{}, 0)
		b.from("x", 1).Pause()
		require.Greater(b, pair(), 20*time.Millisecond)
		time.Sleep(60 * time.Millisecond)
		require.Less(b, pair(), 5*time.Millisecond)
	})
}

// A vote at the first server, of one who has it nowhere else: the lock is to be had all the same, and a
// moment later by those who have met rivals.
func TestAVoteThatIsNobodysIsInNobodysWay(t *testing.T) {
	on(t, 3, func(b *several) {
		c, waits := b.two()
		held := b.hold(waits, "x")
		_, err := c.TryAcquire(b.Context(), "x")
		assert.ErrorIs(b, err, client.ErrBusy)
		b.release(held)
		require.IsType(b, int64(0), b.from("x", 0).Do("FCALL", "holdfast_acquire", "1", "lock:x", "ghost", "600000"))
		_, err = c.TryAcquire(b.Context(), "x")
		assert.ErrorIs(b, err, client.ErrBusy)
		time.Sleep(200 * time.Millisecond)
		for range 3 { // a lock of one's own makes it no news
			l, err := c.TryAcquire(b.Context(), "x")
			require.NoError(b, err)
			b.release(l)
		}
		began := time.Now()
		b.release(<-bed.Waits(b.T, waits, "x", client.ErrUnreachable))
		assert.Less(b, time.Since(began), 3*time.Second)
	})
}

// Two servers vote late, so their tokens are higher than the holder's, and are among the first to answer
// when others ask, and when the holder looks at its lock, a second later: it is the holder's all the same.
func TestLateVotersAreLookedAtFirst(t *testing.T) {
	on(t, 5, func(b *several) {
		c, other := b.two()
		delay := func(d time.Duration, servers ...int) {
			for _, i := range servers {
				b.world.Delay(redis.Path{Node: b.nodes[i]}, d)
			}
		}
		delay(5*time.Millisecond, 0, 1)
		l, err := c.TryAcquire(b.Context(), "x", client.WithoutRenewal())
		require.NoError(b, err)
		time.Sleep(500 * time.Millisecond)
		delay(0, 0, 1)
		delay(5*time.Millisecond, 2, 3)
		info, err := other.Inspect(b.Context(), "x")
		require.NoError(b, err)
		assert.Equal(b, l.Fence(), info.Fence)
		time.Sleep(time.Second)
		require.NoError(b, l.Context().Err(), "%v", l)
		b.release(l)
	})
}

// What cannot be given back to a server that is gone is nobody's trouble: the log says nothing.
func TestALostServerIsNotAnOutage(t *testing.T) {
	on(t, 3, func(b *several) {
		var text strings.Builder
		c := b.client(client.Config{Logger: slog.New(slog.NewTextHandler(&text, nil))})
		l := b.hold(c, "x")
		b.nodes[0].Kill()
		b.release(l)
		time.Sleep(2 * lease)
		l = b.hold(c, "x")
		time.Sleep(2 * lease)
		b.release(l)
		assert.Empty(b, text.String())
	})
}

// TryAcquire "takes the lock if it is free": one of many that try at once has it, as on one server.
func TestOneOfManyWhoTryHasIt(t *testing.T) {
	on(t, 5, func(b *several) {
		var clients []*client.Client
		for range 10 {
			clients = append(clients, b.client(client.Config{}))
		}
		for range 20 {
			var all sync.WaitGroup
			var won atomic.Int32
			for _, c := range clients {
				all.Go(func() {
					l, err := c.TryAcquire(b.Context(), "x", client.WithFreshAnswer(), client.WithMinHold(time.Second))
					if err == nil {
						won.Add(1)
						assert.NoError(b, l.Release(b.Context()))
					}
				})
			}
			all.Wait()
			assert.EqualValues(b, 1, won.Load())
			time.Sleep(5 * time.Second)
		}
	})
}

// Several servers have no line, and each its own token: who resigned does not lead at once again, and who watches
// hears nothing of a server that is slow at times.
func TestLeadersOfSeveralServers(t *testing.T) {
	on(t, 3, func(b *several) {
		one, other := b.two()
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
		defer cancel()
		terms := make(chan *client.Client, 1000)
		var all sync.WaitGroup
		for _, c := range []*client.Client{one, other} {
			all.Go(func() {
				_ = c.Lead(ctx, "x", func(work context.Context) error {
					terms <- c
					select {
					case <-work.Done():
					case <-time.After(10 * time.Second):
					}
					return client.ErrResign
				})
			})
		}
		all.Wait()
		same, n := 0, len(terms)-1
		for last := <-terms; len(terms) > 0; {
			next := <-terms
			if next == last {
				same++
			}
			last = next
		}
		assert.Less(b, same, n/10)
	})
	on(t, 3, func(b *several) {
		c, other := b.two()
		l := b.hold(c, "x")
		ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
		defer cancel()
		go func() {
			for i := 0; ctx.Err() == nil; i++ {
				b.world.Delay(redis.Path{Node: b.nodes[i%3]}, 60*time.Millisecond)
				time.Sleep(3 * time.Second)
				b.world.Delay(redis.Path{Node: b.nodes[i%3]}, 0)
				time.Sleep(time.Second)
			}
		}()
		seen := 0
		for range other.Watch(ctx, "x") {
			seen++
		}
		assert.Equal(b, 1, seen)
		b.release(l)
	})
}
