package several

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

func TestALockIsWithAllServers(t *testing.T) {
	on(t, 5, func(b *bed) {
		c, other := b.client(client.Config{}), b.client(client.Config{})
		defer c.Close()
		defer other.Close()
		l, err := c.TryAcquire(b.Context(), "x")
		require.NoError(b, err)
		time.Sleep(time.Second)
		assert.Equal(b, 5, b.votes("x", l.Owner()))
		_, err = other.TryAcquire(b.Context(), "x")
		assert.ErrorIs(b, err, client.ErrBusy)
		time.Sleep(time.Minute)
		assert.NoError(b, l.Context().Err())
		info, err := other.Inspect(b.Context(), "x")
		require.NoError(b, err)
		assert.True(b, info.Held)
		assert.Equal(b, l.Owner(), info.Holder.Owner)
		assert.Equal(b, l.Fence(), info.Fence)
		require.NoError(b, l.Release(b.Context()))
		time.Sleep(time.Second)
		assert.Zero(b, b.votes("x", l.Owner()))
		m, err := other.TryAcquire(b.Context(), "x")
		require.NoError(b, err)
		assert.Greater(b, m.Fence(), l.Fence())
		require.NoError(b, m.Release(b.Context()))
	})
}

func TestAMinorityMayBeLost(t *testing.T) {
	on(t, 5, func(b *bed) {
		c, other := b.client(client.Config{}), b.client(client.Config{})
		defer c.Close()
		defer other.Close()
		l, err := c.Acquire(b.Context(), "x")
		require.NoError(b, err)
		b.nodes[0].Kill()
		b.nodes[3].Kill()
		time.Sleep(time.Minute)
		require.NoError(b, l.Context().Err())
		_, err = other.TryAcquire(b.Context(), "x")
		assert.ErrorIs(b, err, client.ErrBusy)
		began := time.Now()
		waited := make(chan *client.Lock)
		go func() {
			m, err := other.Acquire(b.Context(), "x")
			assert.NoError(b, err)
			waited <- m
		}()
		time.Sleep(time.Second)
		require.NoError(b, l.Release(b.Context()))
		m := <-waited
		assert.Less(b, time.Since(began), 3*time.Second)
		require.NoError(b, m.Release(b.Context()))
	})
}

// A server that says that nobody has the lock may have been told to break it.
func TestABrokenLockIsNotTakenBack(t *testing.T) {
	on(t, 3, func(b *bed) {
		c, other := b.client(client.Config{}), b.client(client.Config{})
		defer c.Close()
		defer other.Close()
		l, err := c.TryAcquire(b.Context(), "x")
		require.NoError(b, err)
		time.Sleep(800 * time.Millisecond) // it is not known yet where the holder hears of that
		info, err := other.Break(b.Context(), "x", "a test")
		require.NoError(b, err)
		assert.True(b, info.Held)
		assert.ErrorIs(b, l.RenewFor(b.Context(), 500*time.Millisecond), client.ErrLost)
		assert.Zero(b, b.votes("x", l.Owner()))
	})
}

// Servers that grant nothing yet do answer: who stops waiting for them did not meet an outage.
func TestServersThatAreTooYoungAreNoOutage(t *testing.T) {
	on(t, 3, func(b *bed) {
		for _, n := range b.nodes {
			n.Kill()
			n.Restart(redis.Everything)
		}
		c := b.client(client.Config{})
		defer c.Close()
		ctx, cancel := context.WithTimeout(b.Context(), 450*time.Millisecond)
		defer cancel()
		_, err := c.Acquire(ctx, "x")
		assert.ErrorIs(b, err, client.ErrTimeout)
		assert.NotErrorIs(b, err, client.ErrUnreachable)
	})
}

// A server that was restarted empty votes again after Guard and two renewals, also if nobody takes a
// lock meanwhile: its memory begins at the first of them.
func TestAllMayBeRestartedUnderALock(t *testing.T) {
	on(t, 3, func(b *bed) {
		c := b.client(client.Config{})
		defer c.Close()
		l, err := c.TryAcquire(b.Context(), "x")
		require.NoError(b, err)
		for _, n := range b.nodes {
			n.Kill()
			n.Restart(redis.Nothing)
			require.Equal(b, functions.Library, n.Do("FUNCTION", "LOAD", "REPLACE", functions.Source))
			time.Sleep(lease + 2*lease/3 + time.Second)
			require.NoError(b, l.Context().Err())
			assert.Equal(b, 3, b.votes("x", l.Owner()))
		}
		assert.NoError(b, l.Release(b.Context()))
	})
}

// A holder that lost a majority works until it hears of that: what it still has must keep others out
// until then.
func TestVotesAreKeptUntilTheContextEnds(t *testing.T) {
	on(t, 3, func(b *bed) {
		c := b.client(client.Config{})
		defer c.Close()
		l, err := c.Acquire(b.Context(), "x")
		require.NoError(b, err)
		time.Sleep(2 * time.Second) // it is subscribed: the news of a break is waited for
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

// A server that refuses at once is no reason to wait less for one that is far away.
func TestRenewalsWaitForServersThatAreFar(t *testing.T) {
	on(t, 5, func(b *bed) {
		c := b.client(client.Config{})
		defer c.Close()
		for _, n := range b.nodes[:2] {
			b.world.Delay(redis.Path{Node: n}, 100*time.Millisecond)
		}
		l, err := c.TryAcquire(b.Context(), "x")
		require.NoError(b, err)
		for _, n := range b.nodes[3:] {
			n.Kill()
		}
		time.Sleep(time.Minute)
		assert.NoError(b, l.Context().Err())
	})
}
