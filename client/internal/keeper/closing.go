// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// Desert ends every lock's context, without giving it back, and lets no further one begin.
func (k *Keeper) Desert() {
	k.stop(func(h *holding.Holding) *holding.Ending { return h.Lose(k.Closed, "", (*lease.Lease).End) })
}

// Halt ends every lock's context, lets no further one begin, and renews those that there are until they are
// released: then over ends, and never by Desert.
func (k *Keeper) Halt(cause error) (over context.Context) {
	var left atomic.Int64
	over, end := context.WithCancel(context.Background())
	less := func() {
		if left.Add(-1) == 0 {
			end()
		}
	}
	left.Add(1) // until all are counted
	k.stop(func(h *holding.Holding) *holding.Ending {
		left.Add(1)
		h.Finally(func() {
			if _, lost := h.Holder().Stands(); !errors.Is(lost, k.Closed) { // else by Desert
				less()
			}
		})
		return h.Halt(cause)
	})
	less()
	return over
}

func (k *Keeper) stop(end func(*holding.Holding) *holding.Ending) {
	k.mu.Lock()
	k.closing = true
	k.mu.Unlock()
	var ended []*holding.Ending // first all: the context of one is the parent of another's
	for _, x := range k.all() {
		if h, ok := x.timed.(*holding.Holding); ok {
			if e := end(h); e != nil {
				ended = append(ended, e)
			}
			k.Update(h)
		}
	}
	for _, e := range ended {
		if k.ended(e); e.Gone {
			e.Close()
		}
	}
}

// Close is Desert. What nobody got is undone before it returns, or when patience is over lapses with its
// lease. It waits for the scheduler and its pipelines.
func (k *Keeper) Close(patience context.Context) {
	k.Desert()
	undone, done := context.WithCancel(patience)
	defer done()
	k.mu.Lock()
	k.undone = done
	for _, x := range slices.Clone(k.queue) {
		if u, ok := x.timed.(*Undo); ok && u.round > 0 { // it is only repeated
			k.update(u, time.Time{})
		}
	}
	k.settled()
	k.mu.Unlock()
	<-undone.Done()
	k.mu.Lock()
	k.cancel() // neither a pipeline nor run begins after this
	k.timer.Stop()
	for _, x := range k.queue {
		*x.Timer() = -1
		if u, ok := x.timed.(*Undo); ok {
			u.tell(fcall.Outcome{Err: k.Closed})
		}
	}
	k.queue = nil
	k.mu.Unlock()
	k.done.Wait()
}

// settled tells Close when nothing is left. k.mu is held.
func (k *Keeper) settled() {
	if len(k.queue) == 0 && k.undone != nil {
		k.undone()
	}
}
