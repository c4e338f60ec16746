// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// More goroutines of two processes than the limit permits: never more at a time, each with a slot and a
// token of its own.
func TestALimitHolds(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		clients := []*client.Client{e.open(client.Config{}), e.open(client.Config{})}
		var taken [3]atomic.Bool
		var tokens sync.Map
		var work sync.WaitGroup
		for i := range 8 {
			work.Go(func() {
				for range 20 {
					err := clients[i%2].Do(e.Ctx, "a", func(ctx context.Context) error {
						slot := client.Slot(ctx) - 1
						require.True(t, taken[slot].CompareAndSwap(false, true), "slot %d twice", slot+1)
						_, twice := tokens.LoadOrStore(client.Fence(ctx), true)
						require.False(t, twice)
						taken[slot].Store(false)
						return ctx.Err()
					}, client.WithLimit(len(taken)))
					require.NoError(t, err)
				}
			})
		}
		work.Wait()
		e.Eventually("free", func() bool { return !e.inspect(clients[0], "a").Held })
	})
}

// A slot is handed to the next in line with its number, and renewed; a break of one, and of all,
// reaches whom it concerns.
func TestHoldersComeAndGo(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		a, b := e.open(client.Config{Lease: 15 * time.Second}), e.open(client.Config{Lease: 15 * time.Second})
		two := client.WithLimit(2)
		first, second := e.Take(a, "a", two), e.Take(b, "a", two)
		_, err := b.TryAcquire(e.Ctx, "a", two)
		only(t, client.ErrBusy, err)
		require.Equal(t, "limited", as[*client.BusyError](e, err).Why)
		third, alone := e.Acquire(e.Ctx, b, "a", two), (<-chan testbed.Outcome)(nil)
		e.Line(a, "a", 1)
		alone = e.Acquire(e.Ctx, a, "a")
		e.Line(a, "a", 2)
		e.Release(first)
		next := e.Locked(third).Lock
		require.Equal(t, []int{1, 2}, []int{next.Slot(), second.Slot()})
		require.NoError(t, next.Renew(e.Ctx))

		holders, err := a.Holders(e.Ctx, "a")
		require.NoError(t, err)
		require.Len(t, holders, 2)
		require.Equal(t, []string{next.Owner(), second.Owner()}, []string{holders[0].Holder.Owner, holders[1].Holder.Owner})
		_, err = a.BreakOwner(e.Ctx, "a", next.Owner(), "why")
		require.NoError(t, err)
		require.ErrorIs(t, e.Ended(next.Context()), client.ErrBroken)
		require.NoError(t, second.Renew(e.Ctx))
		info, err := a.Break(e.Ctx, "a", "why")
		require.NoError(t, err)
		require.Equal(t, next.Fence(), info.Fence, "the highest so far")
		require.ErrorIs(t, e.Ended(second.Context()), client.ErrBroken)
		l := e.Locked(alone).Lock
		require.Zero(t, l.Slot())

		readers := []<-chan testbed.Outcome{e.Acquire(e.Ctx, a, "a", client.WithShared()), e.Acquire(e.Ctx, b, "a", client.WithShared())}
		e.Line(a, "a", 2)
		e.Release(l)
		slots := []int{e.Locked(readers[0]).Lock.Slot(), e.Locked(readers[1]).Lock.Slot()}
		require.ElementsMatch(t, []int{1, 2}, slots)
	})
}
