// SPDX-License-Identifier: Apache-2.0

package holding

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/stretchr/testify/require"
)

var terms = &lease.Terms{Length: 30 * time.Second, RenewEvery: 10 * time.Second, Grace: 5 * time.Second}

// granted is a Holding of a run of tokens, and the one Ref of its holder.
func granted(t *testing.T, last int64) (*Holding, *Ref) {
	t.Helper()
	now := time.Now()
	h := New(Grant{Key: "job", Owner: "owner", Terms: terms, First: 7, Top: last, Since: now, Lease: lease.New(terms, now),
		LostError: func(t *Holder, why error, reason string) error {
			return fmt.Errorf("token %d: %w: %q", t.Fence, why, reason)
		}}).Holding
	ref := work(t.Context())
	require.NoError(t, h.Holder().Add(ref, false))
	return h, ref
}

func work(parent context.Context) *Ref {
	ctx, cancel := context.WithCancelCause(parent)
	return &Ref{Context: ctx, Cancel: cancel}
}

// The tokens of a run are used no faster than the server's clock passes them, and only while enough of
// the lease that was agreed is left.
func TestALockIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ref := granted(t, 9)
		first := h.Holder()
		require.False(t, h.Passable(time.Now()), "a microsecond for each token")
		time.Sleep(time.Microsecond)
		require.True(t, h.Passable(time.Now()))
		require.Equal(t, left{last: true}, leave(first, ref))
		require.Equal(t, ErrNotHeld, first.Add(work(t.Context()), true), "it was released")
		second := h.Pass(time.Now())
		require.Equal(t, int64(8), second.Fence)
		require.Equal(t, time.Now(), second.Began)
		require.Same(t, second, h.Holder())
		require.False(t, h.Passable(time.Now()))
		time.Sleep(time.Microsecond)
		require.True(t, h.Passable(time.Now()))
		at := until(h)
		require.True(t, h.Passable(at.Add(-500*time.Millisecond)))
		require.False(t, h.Passable(at.Add(-500*time.Millisecond+1)), "too little is left")
		require.Equal(t, ErrNotHeld, first.Add(work(t.Context()), true), "another has it")
		require.Equal(t, left{}, leave(first, nil), "it is another's to leave")
		require.True(t, leave(second, nil).last, "nobody took it up")
		third := h.Pass(time.Now())
		time.Sleep(time.Minute)
		require.Equal(t, int64(9), third.Fence)
		require.False(t, h.Passable(third.Began.Add(time.Second)), "the run is used up")
	})
	synctest.Test(t, func(t *testing.T) {
		h, ref := granted(t, 9)
		time.Sleep(time.Microsecond)
		_, _, ok := h.Extend(&Ref{}, time.Now(), time.Minute)
		require.True(t, ok)
		require.False(t, h.Passable(time.Now()), "its lease may be another one than was agreed before the next one has it")
		h.Tell(func(l *lease.Lease) { l.Renewed(time.Now()) })
		require.False(t, h.Passable(time.Now()), "its lease is another one than was agreed")
		h.Holder().Leave(ref)
		time.Sleep(time.Hour)
		require.ErrorIs(t, h.Pass(time.Now()).Cause(), ErrExpired, "the lease ended this very moment")
	})
	synctest.Test(t, func(t *testing.T) { // the client shuts down while the lock is between two
		h, ref := granted(t, 9)
		h.Holder().Leave(ref)
		require.True(t, h.Halt(ErrNotHeld).Halts, "which is not the end that the Observer is told of")
		next := h.Pass(time.Now())
		require.ErrorIs(t, next.Add(work(t.Context()), false), ErrNotHeld)
		require.Equal(t, left{last: true}, leave(next, nil), "it is ours, and to be given back")
	})
}

// left is what Leave says.
type left struct {
	last  bool
	cause error
}

func leave(t *Holder, ref *Ref) left {
	last, _, cause := t.Leave(ref)
	return left{last, cause}
}

// A lock that is re-entered is released by the last Ref, and its end reaches all of them.
func TestRefs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, outer := granted(t, 7)
		holder, inner := h.Holder(), work(t.Context())
		require.NoError(t, holder.Add(inner, true))
		require.Equal(t, left{}, leave(holder, inner))
		again := work(t.Context())
		require.NoError(t, holder.Add(again, true))
		e := h.Lose(ErrBroken, "stuck", (*lease.Lease).Refuse)
		require.True(t, e.First && e.Gone)
		e.Cancel()
		for _, ref := range []*Ref{outer, again} {
			require.ErrorIs(t, context.Cause(ref.Context), ErrBroken)
		}
		require.NoError(t, context.Cause(inner.Context), "it had left")
		require.ErrorIs(t, holder.Add(work(t.Context()), true), ErrBroken)
		require.Equal(t, left{cause: holder.Cause()}, leave(holder, outer))
		require.Equal(t, left{cause: holder.Cause(), last: true}, leave(holder, again))
	})
}

// A holder's time ends once, and the first reason stays.
func TestTheFirstCauseStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := granted(t, 7)
		holder := h.Holder()
		holder.Shown.Store(true)
		e := h.Lose(ErrTaken, "", (*lease.Lease).Refuse)
		require.True(t, e.First && e.Shown.CompareAndSwap(true, false))
		require.False(t, holder.Shown.Load(), "whoever has the Ending tells the Observer")
		e = h.Lose(ErrBroken, "stuck", (*lease.Lease).Refuse)
		require.False(t, e.First || e.Shown.Load() || e.Halts)
		require.ErrorIs(t, e.Cause, ErrTaken)
		action, e := h.Step(until(h))
		require.Equal(t, lease.Expire, action)
		require.False(t, e.First)
		require.Nil(t, h.Lose(ErrBroken, "", (*lease.Lease).Refuse), "nobody wants it any more")
		require.Nil(t, h.Lose(ErrExpired, "", (*lease.Lease).End))
		_, cause := holder.Stands()
		require.ErrorIs(t, cause, ErrTaken)
	})
}

// Whoever waits for the slot is woken when it is free, and when the lock is over.
func TestTheSlot(t *testing.T) {
	for name, free := range map[string]func(h *Holding){
		"renewed": func(h *Holding) { h.Tell(func(l *lease.Lease) { l.Renewed(time.Now()) }) },
		"failed":  func(h *Holding) { h.Tell(func(l *lease.Lease) { l.Failed(time.Now()) }) },
		"lost":    func(h *Holding) { h.Lose(ErrTaken, "", (*lease.Lease).Refuse) },
		"ended":   func(h *Holding) { h.End() },
		"closed":  func(h *Holding) { h.Lose(ErrExpired, "", (*lease.Lease).End) },
		"expired": func(h *Holding) { h.Step(until(h)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			h, _ := granted(t, 7)
			length, busy, ok := h.Extend(&Ref{}, time.Now(), 0)
			require.True(t, ok && busy == nil && length == 30*time.Second)
			_, busy, ok = h.Extend(&Ref{}, time.Now(), time.Minute)
			require.False(t, ok)
			_, other, _ := h.Extend(&Ref{}, time.Now(), time.Minute)
			for _, waits := range []<-chan struct{}{busy, other} {
				select {
				case <-waits:
					t.Fatal("it is taken")
				default:
				}
			}
			free(h)
			<-busy
			<-other
			_, busy, ok = h.Extend(&Ref{}, time.Now(), time.Minute)
			require.Nil(t, busy, name)
			require.Equal(t, name == "renewed" || name == "failed", ok, name)
		})
	}
}

// The work goes on while one of its contexts does.
func TestAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, outer := granted(t, 7)
		parent, cancel := context.WithCancel(t.Context())
		require.NoError(t, h.Holder().Add(work(parent), true))
		outer.Cancel(nil)
		renew := func() {
			now := h.Due()
			if action, _ := h.Step(now); action == lease.Look {
				h.Tell(func(l *lease.Lease) { l.Looked(true) })
				now = h.Due()
				action, _ = h.Step(now)
				require.Equal(t, lease.Renew, action)
			}
			h.Tell(func(l *lease.Lease) { l.Renewed(now) })
		}
		renew()
		require.Equal(t, lease.Held, h.Lease.State())
		cancel()
		renew()
		require.Equal(t, lease.Stopping, h.Lease.State())
	})
}

func TestFinally(t *testing.T) {
	h, _ := granted(t, 7)
	ran := []int{}
	h.Finally(func() { ran = append(ran, 1) })
	require.Empty(t, ran)
	h.Close()
	h.Finally(func() { ran = append(ran, 2) })
	require.Equal(t, []int{1, 2}, ran, "at once after the end")
	h.Close()
	require.Len(t, ran, 2, "once")
}

// until is the local deadline.
func until(h *Holding) time.Time {
	at, _ := h.Holder().Stands()
	return at
}
