package conformance

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// What a full server takes is enough to be handed a lock that is not renewed.
func TestAHandOffAtAFullServer(t *testing.T) {
	e := own(t)
	holder, c := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
	l := e.Take(holder, "a")
	waiting := e.Acquire(e.Ctx, c, "a", client.WithoutRenewal())
	e.Line(holder, "a", 1)
	e.admin("CONFIG", "SET", "maxmemory", "1")
	began := time.Now()
	e.Release(l)
	l = e.Locked(waiting).Lock
	require.Less(t, time.Since(began), time.Second)
	require.Greater(t, l.Remaining(), testbed.Long/2, "confirmed, for a whole lease")
	e.Release(l)
}

// The goroutines of a process learn of an outage together, those that stand in line and those that
// come.
func TestAllWhoWaitLearnOfAnOutageTogether(t *testing.T) {
	for _, coming := range []bool{false, true} {
		e := own(t)
		holder, c := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: 2 * time.Second})
		l := e.Take(holder, "a")
		acquire := func(n int) (waiting []<-chan testbed.Outcome) {
			for range n {
				waiting = append(waiting, e.Acquire(e.Ctx, c, "a"))
			}
			return waiting
		}
		var waiting []<-chan testbed.Outcome
		if coming {
			before := acquire(1)[0] // so that the client is subscribed
			e.Line(holder, "a", 1)
			e.Release(l)
			e.Release(e.Locked(before).Lock)
			require.NoError(t, e.D.Nodes()[0].Kill())
			waiting = acquire(6)
		} else {
			waiting = acquire(6)
			e.Line(holder, "a", 1)
			require.NoError(t, e.D.Nodes()[0].Kill())
		}
		var told []time.Time
		for _, w := range waiting {
			o := testbed.Got(t, w)
			only(t, client.ErrUnreachable, o.Err)
			told = append(told, o.At)
		}
		slices.SortFunc(told, time.Time.Compare)
		require.Less(t, told[len(told)-1].Sub(told[0]), 2*time.Second) // one after the other, each would take a lease
	}
}

// An outage is one line when it begins, one for each lock that is lost, and one when it is over.
func TestTheLogOfAnOutage(t *testing.T) {
	t.Parallel()
	e := own(t)
	const n = 200
	log := journal{slog.DiscardHandler, make(chan string, 10*n)}
	c := e.open(client.Config{Lease: 5 * time.Second, RenewEvery: 200 * time.Millisecond, Logger: slog.New(log)})
	var locks []*client.Lock
	for i := range n {
		locks = append(locks, e.Take(c, client.Name(i)))
	}
	e.renewals("199", 1)
	require.Empty(t, log.lines)
	require.NoError(t, e.D.Nodes()[0].Kill())
	for _, l := range locks {
		require.ErrorIs(t, e.Ended(l.Context()), client.ErrExpired)
	}
	lines := map[string]int{}
	for range n + 1 {
		lines[testbed.Got(t, log.lines)]++
	}
	require.NoError(t, e.D.Nodes()[0].Restart())
	e.D.Load(t)
	e.Eventually("connected again", func() bool { _, err := c.Inspect(e.Ctx, "a"); return err == nil })
	lines[testbed.Got(t, log.lines)]++
	require.Empty(t, log.lines, "%v", lines)
	require.Len(t, lines, 3, "three texts: %v", lines)
}

// journal passes on the texts of log lines.
type journal struct {
	slog.Handler
	lines chan string
}

func (journal) Enabled(context.Context, slog.Level) bool { return true }

func (j journal) Handle(_ context.Context, r slog.Record) error { j.lines <- r.Message; return nil }
