package several

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// hold takes a lock and waits until all servers have voted.
func (b *bed) hold(c *client.Client, name string, opts ...client.Option) *client.Lock {
	b.Helper()
	l, err := c.Acquire(b.Context(), name, opts...)
	require.NoError(b, err)
	time.Sleep(100 * time.Millisecond)
	return l
}

// replace makes a server come back empty.
func (b *bed) replace(n *redis.Node) {
	b.Helper()
	n.Kill()
	time.Sleep(time.Second)
	n.Restart(redis.Nothing)
	b.load(n)
}

// Every server is replaced by an empty one while a lock is held: it gets the votes back.
func TestServersAreReplacedOneAfterTheOther(t *testing.T) {
	on(t, 5, func(b *bed) {
		c, other := b.client(client.Config{}), b.client(client.Config{})
		defer c.Close()
		defer other.Close()
		l := b.hold(c, "x")
		for _, n := range b.nodes {
			b.replace(n)
			time.Sleep(3 * lease) // the guard, a lease of saying no, and a renewal
			assert.Equal(b, 5, b.votes("x", l.Owner()))
			_, err := other.TryAcquire(b.Context(), "x")
			assert.ErrorIs(b, err, client.ErrBusy)
		}
		assert.NoError(b, l.Release(b.Context()))
	})
}

// Servers that come back empty do not vote while what they forgot may be held: also if a majority
// has forgotten.
func TestAMajorityComesBackEmpty(t *testing.T) {
	on(t, 5, func(b *bed) {
		c, other := b.client(client.Config{}), b.client(client.Config{})
		defer c.Close()
		defer other.Close()
		l := b.hold(c, "x")
		for _, n := range b.nodes[:3] {
			n.Kill()
		}
		_, err := other.TryAcquire(b.Context(), "x")
		assert.Error(b, err) // one server's word is enough at first
		time.Sleep(200 * time.Millisecond)
		_, err = other.TryAcquire(b.Context(), "x")
		assert.ErrorIs(b, err, client.ErrUnreachable)
		for _, n := range b.nodes[:3] {
			n.Restart(redis.Nothing)
			b.load(n)
		}
		back := time.Now()
		_, err = other.TryAcquire(b.Context(), "x")
		assert.ErrorIs(b, err, client.ErrBusy)
		m, err := other.Acquire(b.Context(), "x")
		require.NoError(b, err)
		assert.Error(b, l.Context().Err())
		assert.GreaterOrEqual(b, time.Since(back), lease)
		assert.Less(b, time.Since(back), lease+time.Second)
		assert.Greater(b, m.Fence(), l.Fence())
		assert.NoError(b, m.Release(b.Context()))
	})
}

// Whichever server is lost, those who wait are served, each when it asks again.
func TestAServerIsLostWhileOthersWait(t *testing.T) {
	on(t, 3, func(b *bed) {
		for _, n := range b.nodes {
			n.Kill()
			c := b.client(client.Config{})
			l := b.hold(c, "x")
			done := make(chan time.Time)
			for range 3 {
				w := b.client(client.Config{})
				defer w.Close()
				go func() {
					assert.NoError(b, w.Do(b.Context(), "x", func(context.Context) error { return nil }))
					done <- time.Now()
				}()
			}
			time.Sleep(5 * time.Second)
			released := time.Now()
			require.NoError(b, l.Release(b.Context()))
			for range 3 {
				assert.Less(b, (<-done).Sub(released), 3*time.Second, n.Addr())
			}
			c.Close()
			n.Restart(redis.Nothing)
			b.load(n)
			time.Sleep(2 * lease)
		}
	})
}

// A clock that is wrong by minutes costs a vote, and no more.
func TestAClockIsFarOff(t *testing.T) {
	for _, wrong := range []time.Duration{time.Hour, -time.Hour, 70 * time.Second, -70 * time.Second, 55 * time.Second, time.Second} {
		on(t, 3, func(b *bed) {
			b.nodes[1].SetClock(wrong, 0)
			time.Sleep(2 * lease)
			last := int64(0)
			for range 30 {
				c := b.client(client.Config{})
				l := b.hold(c, "x")
				assert.Greater(b, l.Fence(), last, wrong)
				last = l.Fence()
				require.NoError(b, l.Release(b.Context()))
				c.Close()
			}
		})
	}
}

// One after the other is without one server, and the clocks differ: what the last holder had is
// known to somebody, because its token was raised at a majority.
func TestTokensGrowWhateverTheClocksSay(t *testing.T) {
	on(t, 3, func(b *bed) {
		for i, n := range b.nodes {
			n.SetClock(time.Duration(10*i)*time.Second, 0)
		}
		time.Sleep(2 * lease)
		last := int64(0)
		for i := range 12 {
			away := b.nodes[i%3]
			away.Pause()
			c := b.client(client.Config{})
			l := b.hold(c, "x")
			assert.Greater(b, l.Fence(), last, i)
			last = l.Fence()
			require.NoError(b, l.Release(b.Context()))
			away.Continue()
			c.Close()
		}
	})
}

// A key that is deleted at a minority is written again, a lease later.
func TestAKeyIsDeletedAtAMinority(t *testing.T) {
	on(t, 5, func(b *bed) {
		c := b.client(client.Config{})
		defer c.Close()
		l := b.hold(c, "x")
		for _, n := range b.nodes[:2] {
			n.Do("DEL", "lock:x")
		}
		time.Sleep(2 * lease)
		assert.NoError(b, l.Context().Err())
		assert.Equal(b, 5, b.votes("x", l.Owner()))
		for _, n := range b.nodes[1:4] {
			n.Do("DEL", "lock:x")
		}
		time.Sleep(lease)
		assert.ErrorIs(b, context.Cause(l.Context()), client.ErrTaken)
	})
}

// Many try at once: nobody beside another, and who waits has it soon.
func TestManyAskAtOnce(t *testing.T) {
	on(t, 5, func(b *bed) {
		inside, entries := 0, make(chan time.Time, 20)
		var clients []*client.Client
		for range 20 {
			c := b.client(client.Config{})
			defer c.Close()
			clients = append(clients, c)
		}
		began := time.Now()
		for _, c := range clients {
			go func() {
				assert.NoError(b, c.Do(b.Context(), "x", func(context.Context) error {
					inside++
					assert.Equal(b, 1, inside)
					time.Sleep(time.Millisecond)
					inside--
					return nil
				}))
				entries <- time.Now()
			}()
		}
		for range clients {
			<-entries
		}
		assert.Less(b, time.Since(began), 3*time.Second)
	})
}

// A break ends the holder's context with its reason, at its next renewal, and the next in line has the
// lock.
func TestALockOnSeveralServersIsBroken(t *testing.T) {
	on(t, 5, func(b *bed) {
		c, next, operator := b.client(client.Config{}), b.client(client.Config{}), b.client(client.Config{})
		defer c.Close()
		defer next.Close()
		defer operator.Close()
		l := b.hold(c, "x")
		time.Sleep(lease)
		waited := make(chan *client.Lock)
		go func() {
			m, err := next.Acquire(b.Context(), "x")
			assert.NoError(b, err)
			waited <- m
		}()
		time.Sleep(time.Second)
		info, err := operator.Break(b.Context(), "x", "runaway")
		require.NoError(b, err)
		assert.Equal(b, l.Owner(), info.Holder.Owner)
		m := <-waited
		broken := time.Now()
		<-l.Context().Done()
		assert.LessOrEqual(b, time.Since(broken), lease/3)
		var lost *client.LostError
		require.ErrorAs(b, context.Cause(l.Context()), &lost)
		assert.ErrorIs(b, lost, client.ErrBroken)
		assert.Contains(b, lost.Reason, "runaway")
		assert.Equal(b, 5, b.votes("x", m.Owner()))
		assert.NoError(b, m.Release(b.Context()))
	})
}

// A server votes after the caller has gone: the vote is given back as soon as it comes.
func TestAVoteThatComesLateIsGivenBack(t *testing.T) {
	on(t, 3, func(b *bed) {
		c := b.client(client.Config{})
		defer c.Close()
		slow := redis.Path{Node: b.nodes[2]}
		b.world.Delay(slow, 3*time.Second)
		l, err := c.TryAcquire(b.Context(), "x")
		require.NoError(b, err)
		require.NoError(b, l.Release(b.Context()))
		time.Sleep(12 * time.Second) // there and back twice; by itself its lease ends after 13 s
		assert.Zero(b, b.votes("x", l.Owner()))
		b.world.Delay(redis.Path{}, time.Second)
		ctx, cancel := context.WithTimeout(b.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err = c.Acquire(ctx, "y") // its votes are on their way
		assert.True(b, errors.Is(err, client.ErrUnreachable) || errors.Is(err, client.ErrTimeout), err)
		time.Sleep(5 * time.Second)
		for _, n := range b.nodes {
			assert.Empty(b, n.Hash("lock:y"))
		}
	})
}

// ReleaseOwner that fails is over: the holder goes on, and keeps what it has.
func TestAReleaseByAnotherThatFailsIsNotRepeated(t *testing.T) {
	on(t, 3, func(b *bed) {
		c, other := b.client(client.Config{}), b.client(client.Config{})
		defer c.Close()
		defer other.Close()
		l := b.hold(c, "x")
		for _, n := range b.nodes[1:] {
			b.world.Refuse(redis.Path{Node: n}, true)
			b.world.Reset(redis.Path{Node: n})
		}
		assert.ErrorIs(b, other.ReleaseOwner(b.Context(), "x", l.Owner()), client.ErrUnreachable)
		b.world.Refuse(redis.Path{}, false)
		time.Sleep(2 * lease)
		require.NoError(b, l.Context().Err())
		assert.Equal(b, 3, b.votes("x", l.Owner()))
		assert.NoError(b, l.Release(b.Context()))
	})
}

// A vote at the server that has the line, of one who has it nowhere else: the lock is to be had all
// the same, a moment later.
func TestAVoteThatIsNobodysIsInNobodysWay(t *testing.T) {
	on(t, 3, func(b *bed) {
		c := b.client(client.Config{})
		defer c.Close()
		line := b.nodes[b.line("x")]
		require.IsType(b, int64(0), line.Do("FCALL", "holdfast_acquire", "1", "lock:x", "ghost", "600000"))
		_, err := c.TryAcquire(b.Context(), "x")
		assert.ErrorIs(b, err, client.ErrBusy)
		time.Sleep(200 * time.Millisecond)
		l, err := c.TryAcquire(b.Context(), "x")
		require.NoError(b, err)
		require.NoError(b, l.Release(b.Context()))
		waits := b.client(client.Config{})
		defer waits.Close()
		began := time.Now()
		m, err := waits.Acquire(b.Context(), "x")
		require.NoError(b, err)
		assert.Less(b, time.Since(began), 3*time.Second)
		require.NoError(b, m.Release(b.Context()))
	})
}

// What cannot be given back to a server that is gone is nobody's trouble: the log says nothing.
func TestALostServerIsNotAnOutage(t *testing.T) {
	on(t, 3, func(b *bed) {
		var text strings.Builder
		c := b.client(client.Config{Logger: slog.New(slog.NewTextHandler(&text, nil))})
		defer c.Close()
		l := b.hold(c, "x")
		b.nodes[0].Kill()
		require.NoError(b, l.Release(b.Context()))
		time.Sleep(2 * lease)
		m := b.hold(c, "x")
		time.Sleep(2 * lease)
		require.NoError(b, m.Release(b.Context()))
		assert.Empty(b, text.String())
	})
}

// A lock that is broken before the second round is no outage: it is asked for again.
func TestALockIsBrokenBetweenTheRounds(t *testing.T) {
	for _, wait := range []bool{false, true} {
		on(t, 5, func(b *bed) {
			c := b.client(client.Config{})
			defer c.Close()
			b.world.Delay(redis.Path{}, 50*time.Millisecond)
			go func() {
				time.Sleep(120 * time.Millisecond) // the votes are back, and the second round is on its way
				for _, n := range b.nodes {
					n.Do("FCALL", functions.Break, "1", "lock:x", functions.OptReason, "too early")
				}
			}()
			take := c.TryAcquire
			if wait {
				take = c.Acquire
			}
			l, err := take(b.Context(), "x")
			require.NoError(b, err)
			assert.Equal(b, 5, b.votes("x", l.Owner()))
			require.NoError(b, l.Release(b.Context()))
		})
	}
}
