package conformance

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// A plain string's TTL can be longer than any Duration: that is no reason to ask without a pause.
func TestATTLOfCenturies(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{})
		ttl := int64(300) * 366 * 24 * 3600 * 1000
		require.NoError(t, e.Do("a", "SET", "archive", "PX", strconv.FormatInt(ttl, 10)).Error())
		_, err := c.TryAcquire(e.Ctx, "a")
		only(t, client.ErrBusy, err)
		require.Greater(t, as[*client.BusyError](e, err).Remaining, 30*365*24*time.Hour)
		before := e.calls()
		_, err = c.Acquire(e.Ctx, "a", client.WithMaxWait(time.Second))
		only(t, client.ErrTimeout, err)
		require.Less(t, e.calls()-before, 100, "it polls every 50 ms")
		require.NoError(t, e.Do("a", "DEL").Error())
	})
}

func TestGiveUpEarlyWithADeadlineBeyondAYear(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		holder, c := e.open(client.Config{}), e.open(client.Config{Lease: testbed.Long, GiveUpEarly: true})
		for _, years := range []time.Duration{2, 200} {
			l := e.Take(holder, "a")
			ctx, cancel := context.WithTimeout(context.WithoutCancel(e.Ctx), years*366*24*time.Hour)
			defer cancel()
			waiting := e.Acquire(ctx, c, "a")
			e.Line(c, "a", 1)
			e.Release(l)
			e.Release(e.Locked(waiting).Lock)
		}
	})
}

// Two waits of one process with one owner string are two acquisitions: each has a hold of its own.
func TestTwoWaitsWithOneOwnerString(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		holder, c := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		l := e.Take(holder, "a")
		first := e.Acquire(e.Ctx, c, "a", client.WithOwner("job"))
		e.Line(holder, "a", 1)
		second := e.Acquire(e.Ctx, c, "a", client.WithOwner("job"))
		began := time.Now()
		e.Release(l)
		one, two := e.Locked(first).Lock, e.Locked(second).Lock
		require.Less(t, time.Since(began), 900*time.Millisecond, "both hear of it")
		require.Equal(t, one.Fence(), two.Fence())
		require.Equal(t, 2, e.inspect(c, "a").Holds)
		e.Release(one)
		require.NoError(t, two.Renew(e.Ctx))
		e.Release(two)
		require.False(t, e.Exists("a"))
	})
}

// The server does not tell a client of its own renewals: what it keeps of its own lock must not
// grow old.
func TestInspectCachedOfAnOwnLock(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		const lease = 3 * time.Second
		c := e.open(client.Config{Lease: lease, RenewEvery: 300 * time.Millisecond})
		l := e.Take(c, "a")
		for began := time.Now(); time.Since(began) < 2*lease; {
			info, err := c.InspectCached(e.Ctx, "a")
			require.NoError(t, err)
			require.True(t, info.Held)
			require.Greater(t, info.Remaining, lease/4)
		}
		e.Release(l)
		info, err := c.InspectCached(e.Ctx, "a")
		require.NoError(t, err)
		require.False(t, info.Held, "its release is known at once")
	})
}

// The goroutines of a process learn of an outage together, those that stand in line and those that
// come.
func TestAllWhoWaitLearnOfAnOutageTogether(t *testing.T) {
	for _, coming := range []bool{false, true} {
		e := own(t)
		holder, c := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: 2 * time.Second})
		l := e.Take(holder, "a")
		acquire := func() (waiting []<-chan testbed.Outcome) {
			for range 6 {
				waiting = append(waiting, e.Acquire(e.Ctx, c, "a"))
			}
			return waiting
		}
		var waiting []<-chan testbed.Outcome
		if coming {
			before := e.Acquire(e.Ctx, c, "a") // so that the client is subscribed
			e.Line(holder, "a", 1)
			e.Release(l)
			e.Release(e.Locked(before).Lock)
			require.NoError(t, e.D.Nodes()[0].Kill())
			waiting = acquire()
		} else {
			waiting = acquire()
			e.Line(holder, "a", 1)
			require.NoError(t, e.D.Nodes()[0].Kill())
		}
		var first, last time.Time
		for _, w := range waiting {
			o := testbed.Got(t, w)
			only(t, client.ErrUnreachable, o.Err)
			if first.IsZero() || o.At.Before(first) {
				first = o.At
			}
			if o.At.After(last) {
				last = o.At
			}
		}
		require.Less(t, last.Sub(first), 500*time.Millisecond)
	}
}

// A Try that asks the server is never refused for a lock that another has released before.
func TestAFreshAnswerIsTheServers(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		holder, c := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		for range 100 {
			l := e.Take(holder, "a")
			for range 3 { // from memory, by now
				_, err := c.TryAcquire(e.Ctx, "a")
				only(t, client.ErrBusy, err)
			}
			before := e.calls()
			_, err := c.TryAcquire(e.Ctx, "a", client.WithFreshAnswer())
			only(t, client.ErrBusy, err)
			require.Positive(t, e.calls()-before) // on a busy machine the holder looks meanwhile
			e.Release(l)
			e.Release(e.Take(c, "a", client.WithFreshAnswer()))
		}
	})
}

// journal counts log lines by their text.
type journal struct {
	slog.Handler
	mu    sync.Mutex
	lines map[string]int
}

func (j *journal) Enabled(context.Context, slog.Level) bool { return true }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines[r.Message]++
	return nil
}

func (j *journal) WithAttrs([]slog.Attr) slog.Handler { return j }
func (j *journal) WithGroup(string) slog.Handler      { return j }

func (j *journal) read() (lines map[string]int, total int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines = map[string]int{}
	for text, n := range j.lines {
		lines[text] = n
		total += n
	}
	return lines, total
}

// An outage is one line when it begins, one for each lock that is lost, and one when it is over.
func TestTheLogOfAnOutage(t *testing.T) {
	e := own(t)
	log := &journal{lines: map[string]int{}}
	c := e.open(client.Config{Lease: 2 * time.Second, RenewEvery: 200 * time.Millisecond, Logger: slog.New(log)})
	const n = 200
	var locks []*client.Lock
	for i := range n {
		locks = append(locks, e.Take(c, client.Name(i)))
	}
	e.renewals("199", 1)
	lines, total := log.read()
	require.Zero(t, total, "%v", lines)
	require.NoError(t, e.D.Nodes()[0].Kill())
	for _, l := range locks {
		require.ErrorIs(t, e.Ended(l.Context()), client.ErrExpired)
	}
	e.Eventually("the losses are told", func() bool { _, total := log.read(); return total >= n+1 })
	require.NoError(t, e.D.Nodes()[0].Restart())
	e.D.Load(t)
	e.Eventually("connected again", func() bool { _, err := c.Inspect(e.Ctx, "a"); return err == nil })
	e.Eventually("that is told", func() bool { _, total := log.read(); return total >= n+2 })
	lines, total = log.read()
	require.Equal(t, n+2, total, "%v", lines)
	require.Len(t, lines, 3, "three texts: %v", lines)
}

// A lock that ended here, and was prolonged there by a renewal that the network held up, is given
// back at once.
func TestAnExpiredLockIsGivenBack(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, other := e.open(client.Config{Lease: time.Second}), e.open(client.Config{Lease: testbed.Long})
		l := e.Take(c, "a", client.WithoutRenewal())
		require.NoError(t, e.fcall(functions.Renew, "a", l.Owner(), "60000").Error())
		waiting := e.Acquire(e.Ctx, other, "a")
		e.Line(other, "a", 1)
		require.ErrorIs(t, e.Ended(l.Context()), client.ErrExpired)
		next := e.Locked(waiting).Lock
		require.NoError(t, next.Renew(e.Ctx))
		require.ErrorIs(t, l.Release(e.Ctx), client.ErrExpired)
		e.Release(next)
	})
}
