// SPDX-License-Identifier: Apache-2.0

package several

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// A server that was restarted empty votes again after Guard and two renewals, also if nobody takes a
// lock meanwhile: its memory begins at the first of them.
func TestAllMayBeRestartedUnderALock(t *testing.T) {
	on(t, 3, func(b *several) {
		l := b.hold(b.client(client.Config{}), "x")
		for _, n := range b.nodes {
			n.Kill()
			n.Restart(redis.Nothing)
			require.Equal(b, functions.Library, n.Do("FUNCTION", "LOAD", "REPLACE", functions.Source))
			time.Sleep(lease + 2*lease/3 + time.Second)
			require.NoError(b, l.Context().Err())
			assert.Equal(b, 3, b.votes("x", l.Owner()))
		}
		b.release(l)
	})
}

// A majority is lost under a lock that another waits for. Servers that were away remember, and those that
// were restarted do not, although they have their data: they let nobody in before the guard is over.
func TestAMajorityComesBack(t *testing.T) {
	// What was left at the servers is undone within a second, and a waiter asks within 1.5 s after that.
	const soon = 4 * time.Second
	for name, c := range map[string]struct {
		lose, back func(n *redis.Node)
		pause      time.Duration
	}{
		"with its memory": {(*redis.Node).Pause, (*redis.Node).Continue, 0},
		"with its data":   {(*redis.Node).Kill, func(n *redis.Node) { n.Restart(redis.Everything) }, lease},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, 5, func(b *several) {
				holder, waiter := b.two()
				other := b.client(client.Config{})
				l := b.hold(holder, "x")
				got := bed.Waits(b.T, waiter, "x", client.ErrUnreachable)
				time.Sleep(time.Second)
				for _, n := range b.nodes[:3] {
					c.lose(n)
				}
				_, err := other.TryAcquire(b.Context(), "free")
				assert.ErrorIs(b, err, client.ErrUnreachable)
				time.Sleep(2 * lease)
				assert.ErrorIs(b, context.Cause(l.Context()), client.ErrExpired)
				assert.Empty(b, got)
				for _, n := range b.nodes[:3] {
					c.back(n)
				}
				back := time.Now()
				m := <-got
				require.NotNil(b, m)
				assert.GreaterOrEqual(b, time.Since(back), c.pause)
				assert.Less(b, time.Since(back), c.pause+soon)
				assert.Greater(b, m.Fence(), l.Fence())
				b.release(m)
			})
		})
	}
}

// A server that says no, because it has forgotten all or has somebody's vote who is gone, is not waited for
// less than one that is far, and decides. Nor is one that refuses at once.
func TestAServerThatIsFarDecides(t *testing.T) {
	for _, servers := range []int{3, 5} {
		for _, far := range []time.Duration{5 * time.Millisecond, 40 * time.Millisecond, 100 * time.Millisecond} {
			on(t, servers, func(b *several) {
				c := b.client(client.Config{Guard: 15 * time.Second})
				time.Sleep(6 * time.Second) // until the guard is over
				b.world.Delay(redis.Path{}, 500*time.Microsecond)
				for i := range servers / 2 {
					b.world.Delay(redis.Path{Node: b.from("x", i)}, far)
				}
				l, n := b.hold(c, "x"), b.from("x", servers-1)
				time.Sleep(2 * far)
				require.Equal(b, servers, b.votes("x", l.Owner()))
				n.Restart(redis.Nothing)
				b.load(n)
				for _, name := range []string{"free", "taken"} {
					n.Do("FCALL", functions.Acquire, "1", "lock:taken", "gone", "600000")
					began := time.Now()
					b.release(bed.Must(c.Acquire(b.Context(), name)))
					assert.Less(b, time.Since(began), time.Second)
				}
				time.Sleep(2 * lease)
				assert.NoError(b, l.Context().Err())
				for i := range servers / 2 {
					b.from("x", servers-1-i).Kill()
				}
				time.Sleep(time.Minute)
				assert.NoError(b, l.Context().Err())
			})
		}
	}
}

// One after the other is without one server, and the clocks differ: what the last holder had is
// known to somebody, because its token was raised at a majority.
func TestTokensGrowWhateverTheClocksSay(t *testing.T) {
	on(t, 3, func(b *several) {
		for i, n := range b.nodes {
			n.SetClock(time.Duration(10*i)*time.Second, 0)
		}
		time.Sleep(2 * lease)
		last := int64(0)
		for i := range 12 {
			away := b.nodes[i%3]
			away.Pause()
			l := b.hold(b.client(client.Config{}), "x")
			assert.Greater(b, l.Fence(), last, i)
			last = l.Fence()
			b.release(l)
			away.Continue()
		}
	})
}

// The holder dies. The clock of the server that is asked first was set back: the others' votes are a
// majority, one lease later.
func TestTheFirstServersClockIsSetBack(t *testing.T) {
	on(t, 3, func(b *several) {
		c, w := b.two()
		b.hold(c, "x")
		time.Sleep(2 * time.Second)
		b.from("x", 0).SetClock(-70*time.Second, 0)
		c.Close()
		began := time.Now()
		b.release(<-bed.Waits(b.T, w, "x", client.ErrUnreachable))
		assert.Less(b, time.Since(began), lease+5*time.Second)
	})
}

// A server whose clock is wrong by minutes has no vote that counts, and refuses the token of the others:
// tokens grow. Where that leaves no majority, the lock is busy, or the servers are unreachable: it is no error
// of the caller, who may ask again.
func TestAWrongClockIsNoErrorOfTheCaller(t *testing.T) {
	for _, off := range []time.Duration{70 * time.Second, -70 * time.Second, time.Hour, -time.Hour} {
		on(t, 3, func(b *several) {
			b.from("x", 1).SetClock(off, 0)
			c := b.client(client.Config{})
			before := b.hold(c, "x")
			b.release(before)
			time.Sleep(90 * time.Second) // its memory begins before its clock, and so anew
			first := b.from("x", 0)
			first.Do("FCALL", "holdfast_acquire", "1", "lock:x", "another", "10000", "GUARD", "10000")
			_, err := c.TryAcquire(b.Context(), "x")
			assert.Equal(b, []string{"busy"}, bed.Kinds(err), "%v: %v", off, err)
			first.Do("FCALL", "holdfast_release", "1", "lock:x", "another")
			time.Sleep(2 * time.Second)
			after := b.hold(c, "x")
			assert.Greater(b, after.Fence(), before.Fence(), off)
			b.release(after)
			b.from("x", 2).Pause()
			_, err = c.TryAcquire(b.Context(), "x")
			assert.Equal(b, []string{"unreachable"}, bed.Kinds(err), "%v: %v", off, err)
			_, err = c.Acquire(b.Context(), "x", client.WithMaxWait(3*time.Second))
			require.Equal(b, []string{"unreachable"}, bed.Kinds(err), "%v: %v", off, err)
			b.from("x", 2).Continue()
		})
	}
}
