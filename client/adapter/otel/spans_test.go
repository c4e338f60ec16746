// SPDX-License-Identifier: Apache-2.0

package holdfastotel_test

import (
	"context"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/client"
	holdfastotel "github.com/holdfast-go/holdfast/client/adapter/otel"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// acquires takes a lock in the background.
func acquires(t *testing.T, c *client.Client, ctx context.Context, opts ...client.Option) <-chan *client.Lock {
	got := make(chan *client.Lock, 1)
	go func() {
		l, err := c.Acquire(ctx, "x", opts...)
		require.NoError(t, err)
		got <- l
	}()
	return got
}

// The wait and the hold are children of the caller's span, and the work is one of the hold.
func TestSpansAreNested(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		p := newProcess(t, nil)
		c := s.Client(client.Config{Observer: p.Observer})
		giveBack := s.Take("x", time.Minute)
		within, caller := p.within("caller")
		got := acquires(t, c, within)
		began := time.Now()
		time.Sleep(2 * time.Second)
		giveBack()
		l := <-got
		_, work := p.tracer.Start(l.Context(), "work")
		work.End()
		time.Sleep(3 * time.Second)
		require.Empty(t, p.spans("holdfast hold"), "it goes on")
		require.NoError(t, l.Release(ctx))

		wait, hold := p.only("holdfast wait"), p.only("holdfast hold")
		require.Equal(t, caller.SpanContext().SpanID(), wait.Parent().SpanID())
		require.Equal(t, caller.SpanContext().SpanID(), hold.Parent().SpanID())
		require.Equal(t, hold.SpanContext().SpanID(), p.only("work").Parent().SpanID())
		require.WithinDuration(t, began, wait.StartTime(), time.Millisecond)
		require.InDelta(t, 2*time.Second, wait.EndTime().Sub(wait.StartTime()), float64(100*time.Millisecond))
		require.InDelta(t, 3*time.Second, hold.EndTime().Sub(hold.StartTime()), float64(time.Millisecond))
		is(t, wait, "holdfast.outcome", "acquired")
		is(t, wait, "holdfast.lock.name", "x")
		is(t, hold, "holdfast.end", "released")
		is(t, hold, "holdfast.lock.owner", l.Owner())
		require.Equal(t, codes.Unset, hold.Status().Code)
		require.Empty(t, wait.Links(), "the holder shows no span")
	})
}

// Names are those of callers. OTLP refuses what is not UTF-8, with all that goes with it.
func TestTextIsUTF8(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		p := newProcess(t, func(name string) string { return name })
		c := s.Client(client.Config{Observer: p.Observer})
		const name, shown = "order \xff", "order ?"
		defer s.Take(name, time.Minute)()
		_, err := c.Acquire(ctx, name, client.WithMaxWait(time.Second))
		require.ErrorIs(t, err, client.ErrTimeout)
		l, err := c.Acquire(ctx, "2 "+name, client.WithOwner(name))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		wait, hold := p.only("holdfast wait"), p.only("holdfast hold")
		is(t, wait, "holdfast.lock.name", shown)
		is(t, hold, "holdfast.lock.name", "2 "+shown)
		is(t, hold, "holdfast.lock.owner", shown)
		require.True(t, utf8.ValidString(wait.Status().Description), wait.Status().Description)
		p.counts(1, "holdfast.lock.hold.duration", "holdfast.lock.group", "2 "+shown)
	})
}

// A lock whose context has a parent of its own: the hold is there, and linked to the call.
func TestTheHoldIsInTheLocksOwnContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		p := newProcess(t, nil)
		c := s.Client(client.Config{Observer: p.Observer})
		call, caller := p.within("caller")
		of, owner := p.within("owner")
		l, err := c.Acquire(call, "x", client.WithLockContext(of))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		hold := p.only("holdfast hold")
		require.Equal(t, owner.SpanContext().SpanID(), hold.Parent().SpanID())
		require.Equal(t, []trace.SpanID{caller.SpanContext().SpanID()}, linked(hold))
		require.Empty(t, p.spans("holdfast wait"), "it did not wait")
	})
}

// A call that takes long is a wait, also if the lock was free: an outage, or a connection to be made.
func TestALongWayIsAWait(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		p := newProcess(t, nil)
		c := s.Client(client.Config{Observer: p.Observer})
		s.Pause()
		got := acquires(t, c, ctx)
		time.Sleep(time.Second)
		s.Resume()
		require.NoError(t, (<-got).Release(ctx))
		wait := p.only("holdfast wait")
		is(t, wait, "holdfast.outcome", "acquired")
		require.GreaterOrEqual(t, wait.EndTime().Sub(wait.StartTime()), time.Second)
	})
}

func TestTheSpanOfALostLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		p := newProcess(t, nil)
		c := s.Client(client.Config{Observer: p.Observer})
		l, err := c.Acquire(ctx, "x")
		require.NoError(t, err)
		time.Sleep(11 * time.Second) // its renewal, from which on it is told of a break
		s.Break("x", "maintenance")
		<-l.Context().Done()
		require.ErrorIs(t, l.Release(ctx), client.ErrBroken)
		hold := p.only("holdfast hold")
		is(t, hold, "holdfast.end", "broken")
		is(t, hold, "error.type", "broken")
		require.Equal(t, codes.Error, hold.Status().Code)
		require.Contains(t, hold.Status().Description, "maintenance")
	})
}

// Within a process a wait is linked to the hold before it, handed over by the server or in memory.
func TestAWaitIsLinkedToTheHoldOfThisProcess(t *testing.T) {
	t.Parallel()
	for outcome, clients := range map[string]int{"passed": 1, "acquired": 2} {
		t.Run(outcome, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *locktest.Server) {
				p := newProcess(t, nil)
				c := s.Client(client.Config{Observer: p.Observer})
				other := c
				if clients == 2 {
					other = s.Client(client.Config{Observer: p.Observer})
				}
				l := <-acquires(t, c, ctx)
				second := acquires(t, other, ctx)
				time.Sleep(2 * time.Second)
				third := acquires(t, c, ctx)
				time.Sleep(2 * time.Second)
				require.NoError(t, l.Release(ctx))
				l = <-second
				time.Sleep(100 * time.Microsecond) // the next token is that of a later microsecond
				require.NoError(t, l.Release(ctx))
				l = <-third
				require.NoError(t, l.Release(ctx))
				require.NoError(t, c.Do(ctx, "x", func(context.Context) error { return nil }))
				waits, holds := p.spans("holdfast wait"), p.spans("holdfast hold")
				require.Len(t, waits, 2, "the first and the last did not wait")
				require.Len(t, holds, 4)
				is(t, waits[1], "holdfast.outcome", outcome)
				require.Equal(t, []trace.SpanID{holds[0].SpanContext().SpanID()}, linked(waits[0]))
				require.Equal(t, []trace.SpanID{holds[1].SpanContext().SpanID()}, linked(waits[1]))
			})
		})
	}
}

// A hold that was over when a call began is not what it waited for, though others that waited for it
// wait still.
func TestAWaitIsNotLinkedToAHoldThatWasOver(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		p := newProcess(t, nil)
		c := s.Client(client.Config{Observer: p.Observer})
		l := <-acquires(t, c, ctx)
		first, stop := context.WithCancel(ctx)
		go func() { _, _ = c.Acquire(first, "x", client.WithoutReentry()) }()
		time.Sleep(time.Second)
		giveBack := s.Take("x", time.Minute)
		<-l.Context().Done()
		require.ErrorIs(t, l.Release(ctx), client.ErrTaken)
		time.Sleep(time.Second)
		second := acquires(t, c, ctx)
		time.Sleep(time.Second)
		stop()
		time.Sleep(3 * time.Second)
		giveBack()
		l = <-second
		require.NoError(t, l.Release(ctx))
		waits := p.spans("holdfast wait")
		require.Len(t, waits, 2)
		is(t, waits[0], "holdfast.outcome", "canceled")
		require.Len(t, waits[0].Links(), 1)
		require.Empty(t, waits[1].Links())
	})
}

// A limited or shared lock that has room is not waited for, though others have it. Without room it is: the
// last of them to end is linked.
func TestALockWithRoomIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]client.Option{"limited": client.WithLimit(2), "shared": client.WithShared()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *locktest.Server) {
				p := newProcess(t, nil)
				c := s.Client(client.Config{Observer: p.Observer})
				first := <-acquires(t, c, ctx, opt, client.WithoutReentry())
				second := <-acquires(t, c, ctx, opt, client.WithoutReentry())
				require.NoError(t, second.Release(ctx))
				time.Sleep(time.Minute)
				third := <-acquires(t, c, ctx, opt, client.WithoutReentry())
				require.Empty(t, p.spans("holdfast wait"))

				more := []client.Option{client.WithoutReentry()} // shared: alone
				if name == "limited" {
					more = append(more, opt)
				}
				got := acquires(t, c, ctx, more...)
				time.Sleep(time.Second)
				require.NoError(t, first.Release(ctx))
				if name == "limited" {
					require.NoError(t, (<-got).Release(ctx))
				}
				time.Sleep(time.Second)
				require.NoError(t, third.Release(ctx))
				if name == "shared" {
					require.NoError(t, (<-got).Release(ctx))
					holds := p.spans("holdfast hold")
					require.Equal(t, []trace.SpanID{holds[2].SpanContext().SpanID()}, linked(p.only("holdfast wait")))
				}
				p.only("holdfast wait")
			})
		})
	}
}

// Across processes a wait is linked to the span that the holder's label shows.
func TestAWaitIsLinkedToAHolderElsewhere(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		here, there := newProcess(t, nil), newProcess(t, nil)
		a, b := s.Client(client.Config{Observer: here.Observer}), s.Client(client.Config{Observer: there.Observer})
		within, caller := here.within("caller")
		asking, asker := there.within("asker")
		l, err := a.Acquire(within, "x", holdfastotel.Label(within, "the first"))
		require.NoError(t, err)

		_, err = b.TryAcquire(asking, "x")
		require.ErrorIs(t, err, client.ErrBusy)
		require.ErrorContains(t, err, "(the first 00-"+caller.SpanContext().TraceID().String())
		_, err = b.Acquire(asking, "x", client.WithMaxWait(time.Second))
		require.ErrorIs(t, err, client.ErrTimeout)
		got := acquires(t, b, asking)
		time.Sleep(2 * time.Second)
		require.NoError(t, l.Release(ctx))
		require.NoError(t, (<-got).Release(ctx))
		asker.End()

		waits := there.spans("holdfast wait")
		require.Len(t, waits, 2)
		is(t, waits[0], "holdfast.outcome", "timeout")
		is(t, waits[0], "error.type", "timeout")
		require.Equal(t, codes.Error, waits[0].Status().Code)
		is(t, waits[1], "holdfast.outcome", "acquired")
		for _, w := range waits {
			require.Equal(t, []trace.SpanID{caller.SpanContext().SpanID()}, linked(w))
			require.Equal(t, caller.SpanContext().TraceID(), w.Links()[0].SpanContext.TraceID())
		}
		events := there.only("asker").Events()
		require.Len(t, events, 1)
		require.Equal(t, "holdfast refused", events[0].Name)
	})
}

// The holder that the server told of is the one of this process: that is one link, to its hold.
func TestAHolderIsLinkedOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		p := newProcess(t, nil)
		a, b := s.Client(client.Config{Observer: p.Observer}), s.Client(client.Config{Observer: p.Observer})
		within, _ := p.within("caller")
		l, err := a.Acquire(within, "x", holdfastotel.Label(within, ""))
		require.NoError(t, err)
		got := acquires(t, b, ctx)
		time.Sleep(time.Second)
		require.NoError(t, l.Release(ctx))
		require.NoError(t, (<-got).Release(ctx))
		wait, holds := p.only("holdfast wait"), p.spans("holdfast hold")
		require.Equal(t, []trace.SpanID{holds[0].SpanContext().SpanID()}, linked(wait))
	})
}
