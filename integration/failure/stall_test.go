// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// However a connection stalls, the lock's context ends before the server's lease does, by a margin
// of 12 ms. A machine that is too busy to run goroutines on time shows here too, and is told apart
// by plain timers that are late by half of that.
func TestAStalledConnectionEndsTheContextFirst(t *testing.T) {
	b := serial(t)
	const lease = time.Second
	var all sync.WaitGroup
	early := make([]time.Duration, 12)
	for lane := range 4 {
		c, proxy := b.through(lease)
		all.Go(func() {
			for round := range 3 {
				early[lane*3+round] = b.stall(c, proxy, fmt.Sprint("a", lane*3+round), lane*3+round)
			}
		})
	}
	all.Wait()
	t.Logf("the context ended before the server's lease by %v", early)
}

// stall takes a lock and stalls its connection at a moment that depends on i. It returns how much
// earlier than the server's lease the context ended.
func (b *bed) stall(c *client.Client, proxy *server.Proxy, name string, i int) time.Duration {
	var l *client.Lock
	// a machine that is too busy to renew in time loses it before the stall
	for l == nil || l.Context().Err() != nil {
		proxy.Resume()
		b.Eventually("the lock", func() bool { // after the last stall the connection must come back
			l, _ = c.TryAcquire(b.Ctx, name)
			return l != nil
		})
		for left, renewals := l.Remaining(), 0; renewals < i%3 && l.Context().Err() == nil; {
			<-time.After(time.Millisecond)
			now := l.Remaining()
			if now > left {
				renewals++
			}
			left = now
		}
		<-time.After(time.Duration(i) * 27 * time.Millisecond) // somewhere between two renewals
		proxy.Stall()
	}
	deadline, ends, timers := time.Now().Add(l.Remaining()), b.ends(name), testbed.Late()
	assert.True(b.TB, ends.IsZero() || deadline.Before(ends), "%s: the local lease ends %v late", name, deadline.Sub(ends))
	assert.ErrorIs(b.TB, b.Ended(l.Context()), client.ErrExpired)
	early := time.Until(ends)
	worst := timers()
	assert.True(b.TB, early > 0 || ends.IsZero() || worst > 6*time.Millisecond, "%s: the context ended %v late, plain timers at most %v", name, -early, worst)
	proxy.Resume()
	proxy.Cut()
	assert.ErrorIs(b.TB, l.Release(b.Ctx), client.ErrExpired)
	return early
}

// lined returns a waiter behind a network of its own, and another one after it, of a lock that is held.
func (b *bed) lined(ctx context.Context) (l *client.Lock, c *client.Client, proxy *server.Proxy, first, second <-chan testbed.Outcome) {
	b.TB.Helper()
	c = b.open(testbed.Long)
	dead, proxy := b.through(testbed.Long)
	l = b.Take(c, "a")
	first = b.Acquire(ctx, dead, "a")
	b.Line(c, "a", 1)
	second = b.Acquire(b.Ctx, b.open(testbed.Long), "a")
	b.Line(c, "a", 2)
	return l, c, proxy, first, second
}

// A waiter that is silently dead, at the head of the line, costs about two seconds and not a whole
// lease. When it comes back to life it does not believe the grant that is over.
func TestASilentlyDeadWaiter(t *testing.T) {
	b := single(t)
	l, holder, proxy, first, second := b.lined(b.Ctx)
	proxy.Stall()
	released := time.Now()
	b.Release(l)
	o := b.Locked(second)
	t.Logf("the next one had it after %v", o.At.Sub(released))
	require.Less(t, o.At.Sub(released), testbed.Long/4, "2 s, and not a lease")
	proxy.Resume()
	b.Line(holder, "a", 1)
	require.Empty(t, first, "two holders")
	require.NoError(t, o.Lock.Context().Err())
	b.Release(o.Lock)
	b.Release(b.Locked(first).Lock)
}

// A waiter whose connection is closed costs nothing that can be measured.
func TestAWaiterWhoseConnectionIsClosed(t *testing.T) {
	b := single(t)
	ctx, cancel := context.WithCancel(b.Ctx)
	l, c, proxy, first, second := b.lined(ctx)
	channels := func() int {
		m, err := b.Redis.Do(b.Ctx, b.Redis.B().PubsubShardchannels().Build()).AsStrSlice()
		require.NoError(t, err)
		return len(m)
	}
	before := channels()
	require.NoError(t, proxy.Close())
	b.Eventually("the server knows that it is closed", func() bool { return channels() < before })
	released := time.Now()
	b.Release(l)
	info, err := c.Inspect(b.Ctx, "a")
	require.NoError(t, err)
	o := b.Locked(second)
	t.Logf("the next one had it after %v", o.At.Sub(released))
	require.Equal(t, o.Lock.Owner(), info.Holder.Owner, "at once, and not after the 2 s of a grant that nobody confirms")
	cancel()
	require.Error(t, testbed.Got(b.TB, first).Err)
	b.Release(o.Lock)
}

// A grant whose message is lost with its connection is found by asking again.
func TestALostGrantMessage(t *testing.T) {
	b := single(t)
	holder := b.open(testbed.Long)
	waiter, proxy := b.through(testbed.Long)
	for range 3 {
		l := b.Take(holder, "a")
		waiting := b.Acquire(b.Ctx, waiter, "a")
		b.Line(holder, "a", 1)
		proxy.Stall()
		released := time.Now()
		b.Release(l)
		proxy.Cut() // the message is on its way, and stays there
		proxy.Resume()
		o := b.Locked(waiting)
		t.Logf("it had the lock after %v", o.At.Sub(released))
		require.Less(t, o.At.Sub(released), testbed.Long/4, "about a second, and not a lease")
		require.NoError(t, o.Lock.Renew(b.Ctx))
		b.Release(o.Lock)
	}
}
