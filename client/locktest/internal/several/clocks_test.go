// SPDX-License-Identifier: Apache-2.0

package several

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
)

// A clock that is wrong by minutes costs a vote, and no more.
func TestAClockIsFarOff(t *testing.T) {
	for _, wrong := range []time.Duration{time.Hour, -time.Hour, 70 * time.Second, -70 * time.Second, 55 * time.Second, time.Second} {
		on(t, 3, func(b *several) {
			b.nodes[1].SetClock(wrong, 0)
			time.Sleep(2 * lease)
			last := int64(0)
			for range 30 {
				l := b.hold(b.client(client.Config{}), "x")
				assert.Greater(b, l.Fence(), last, wrong)
				last = l.Fence()
				b.release(l)
			}
		})
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

// A server whose clock is wrong has no vote that counts, and refuses the token of the others. Where that
// leaves no majority, the lock is busy, or the servers are unreachable: it is no error of the caller, who
// may ask again.
func TestAWrongClockIsNoErrorOfTheCaller(t *testing.T) {
	for _, off := range []time.Duration{70 * time.Second, -70 * time.Second, -time.Hour} {
		on(t, 3, func(b *several) {
			b.from("x", 1).SetClock(off, 0)
			c := b.client(client.Config{})
			b.release(b.hold(c, "x"))
			time.Sleep(90 * time.Second) // its memory begins before its clock, and so anew
			first := b.from("x", 0)
			first.Do("FCALL", "holdfast_acquire", "1", "lock:x", "another", "10000", "GUARD", "10000")
			_, err := c.TryAcquire(b.Context(), "x")
			assert.Equal(b, []string{"busy"}, bed.Kinds(err), "%v: %v", off, err)
			first.Do("FCALL", "holdfast_release", "1", "lock:x", "another")
			time.Sleep(2 * time.Second)
			b.release(b.hold(c, "x"))
			b.from("x", 2).Pause()
			_, err = c.TryAcquire(b.Context(), "x")
			assert.Equal(b, []string{"unreachable"}, bed.Kinds(err), "%v: %v", off, err)
			_, err = c.Acquire(b.Context(), "x", client.WithMaxWait(3*time.Second))
			require.Equal(b, []string{"unreachable"}, bed.Kinds(err), "%v: %v", off, err)
			b.from("x", 2).Continue()
		})
	}
}
