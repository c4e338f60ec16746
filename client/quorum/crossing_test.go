// SPDX-License-Identifier: Apache-2.0

package quorum

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/stretchr/testify/require"
)

// Who waits while too few servers vote asks less and less often, also where this process had the lock before.
func TestThePausesGrowAfterALockOfOnesOwn(t *testing.T) {
	r, now := rivals{by: map[string]rival{}}, time.Now()
	r.met("k", "other", now)
	r.beaten("k")
	for range 20 { // refused by servers that are settling: nobody has it
		r.met("k", "", now)
	}
	require.Greater(t, r.again("k", 0), lastBackoff/4)
}

// A call that was given up still runs while the next waiter of its process asks, by the same owner: the race
// detector looks, and nothing stays behind.
func TestCallsOfOneOwnerSideBySide(t *testing.T) {
	b := several(t, 3)
	for range 300 {
		owner := b.owner()
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(2*time.Millisecond))
				defer cancel()
				_, _ = b.Do(ctx, b.call(fcall.Wait, owner))
			})
		}
		all.Wait()
		b.undo(b.call(fcall.Leave, owner))
	}
	b.until(func() bool { return slices.Equal(b.has(), []string{"", "", ""}) })
}

// A question whether a lock is still ours is a renewal for a millisecond. It must not get a vote back for so
// long: a minimum would keep the lock there when that is over, from its holder too.
func TestAQuestionAsksForNoVote(t *testing.T) {
	b := several(t, 3)
	call := b.call(fcall.Wait, b.owner())
	call.MinHold = fcall.TTL(time.Hour)
	r := b.do(call)
	require.True(t, r.Yes)
	lost := (b.first("lock:x") + 1) % 3
	_, err := b.nodes[lost].Do(t.Context(), "DEL", "lock:x")
	require.NoError(t, err)
	of := b.ballots.find(call.Owner, false)
	of.all.mu.Lock()
	of.seats[lost].last = time.Time{} // a lease ago, or it never voted
	of.all.mu.Unlock()
	renewal := b.call(fcall.Renew, call.Owner)
	renewal.Fence, renewal.TTL = r.Fence, "1"
	require.True(t, b.do(renewal).Yes)
	time.Sleep(100 * time.Millisecond)
	renewal.TTL = call.TTL
	require.True(t, b.do(renewal).Yes)
	require.NoError(t, b.nodes[(lost+1)%3].Kill())
	require.True(t, b.do(renewal).Yes, "two of three have it")
}
