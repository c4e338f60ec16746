// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/keeper"
)

// Release passes a lock on inside the process, or gives it back: then it blocks until the server has
// answered, ctx ends, or the lease is over. Its last Ref has left.
func (q *Queues) Release(ctx context.Context, t *holding.Holder, now time.Time) (passed bool, err error) {
	passed, ride := q.leave(t.Holding, t.Fence, now, true)
	if passed {
		return true, nil
	}
	return false, q.Keeper.Release(ctx, t.Holding, t.Fence, ride)
}

// GiveUp is Release in the background, of a lock whose work was ended.
func (q *Queues) GiveUp(t *holding.Holder) {
	q.Lost(t.Holding)
	q.Keeper.GiveUp(t.Holding, t.Fence)
}

// Decline gives a lock on that nobody took up.
func (q *Queues) Decline(t *holding.Holder) { q.Withdraw(t, q.Keeper.Check(t, time.Now())) }

// Withdraw gives a lock on that nobody worked under, and whose last Ref has left.
func (q *Queues) Withdraw(t *holding.Holder, lost error) {
	if lost != nil {
		q.GiveUp(t)
	} else if passed, _ := q.leave(t.Holding, t.Fence, time.Now(), false); passed {
		return
	} else if t.Fence == t.First {
		q.Keeper.Withdraw(t.Holding)
	} else { // others of this process have worked under it
		q.Keeper.GiveUp(t.Holding, t.Fence-1)
	}
}

// leave takes the holder of a token away from the queue of its key, if that has it: the lock was passed on, or
// is to be given back, together with ride if rides. Token 0 is for a lock that is lost, with any token.
func (q *Queues) leave(h *holding.Holding, token int64, now time.Time, rides bool) (passed bool, ride *keeper.Ride) {
	s := q.shard(h.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.keys[h.Key]
	if e == nil || e.h != h {
		return false, nil
	}
	over := token == 0 || e.machine.Waiting() > 0 && (now.Sub(h.Since) > passSlice || !h.Passable(pace(h, token, now)))
	if token == 0 {
		token = h.Holder().Fence
	}
	e.step(now, Event{Kind: Release, Owner: h.Owner, Token: token, Over: over})
	if passed = e.h == h; rides && !passed {
		return false, e.ride()
	}
	e.launch()
	return passed, nil
}

// pace waits until the next token of a run may be used: a microsecond at most. The clock of a test may
// stand still.
func pace(h *holding.Holding, token int64, now time.Time) time.Time {
	at := h.Since.Add(time.Duration(token+1-h.First) * time.Microsecond)
	for range 200 {
		if !now.Before(at) {
			break
		}
		now = time.Now()
	}
	return now
}

// Lost tells the queue of a lock that is not ours any more.
func (q *Queues) Lost(h *holding.Holding) { q.leave(h, 0, time.Now(), false) }
