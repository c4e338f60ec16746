package conformance

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// own is a single server that the test may stop and refuse things.
func own(t *testing.T, opts ...server.Option) *env {
	t.Helper()
	d := server.Single(t, append(opts, server.Owned())...)
	d.Load(t)
	return lay(t, d)
}

// admin sends a command to the only node.
func (e *env) admin(command ...string) string {
	e.TB.Helper()
	m, err := e.D.Nodes()[0].Do(e.Ctx, command...)
	require.NoError(e.TB, err)
	text, _ := m.ToString()
	return text
}

// A renewal that is answered with another token is of another lock, though its owner has the same
// name.
func TestALockThatItsOwnerTookAnewIsLost(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		a, b := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		byHand := e.Take(a, "a", client.WithOwner("job"))
		renewed := e.Take(a, "b", client.WithOwner("job"), client.WithRenewal(200*time.Millisecond))
		for _, name := range []string{"a", "b"} {
			require.NoError(t, e.Do(name, "DEL").Error())
			e.Take(b, name, client.WithOwner("job"))
		}
		require.ErrorIs(t, byHand.Renew(e.Ctx), client.ErrTaken)
		require.ErrorIs(t, e.Ended(byHand.Context()), client.ErrTaken)
		require.ErrorIs(t, e.Ended(renewed.Context()), client.ErrTaken)
	})
}

// Client-side caching goes on after a restart of the server, through refused connections.
func TestCachingSurvivesARestart(t *testing.T) {
	e := own(t)
	c, holder := e.open(client.Config{}), e.open(client.Config{Lease: testbed.Long})
	cached := func() bool {
		for range 5 { // the connection may have to be made, and the key to be noticed
			_, _ = c.TryAcquire(e.Ctx, "a")
		}
		before := e.calls()
		for range 20 {
			_, err := c.TryAcquire(e.Ctx, "a")
			if !errors.Is(err, client.ErrBusy) {
				return false
			}
		}
		return e.calls() == before
	}
	e.Take(holder, "a")
	require.True(t, cached())
	require.NoError(t, e.D.Nodes()[0].Kill())
	for refused := 0; refused < 5; {
		if _, err := c.TryAcquire(e.Ctx, "a"); errors.Is(err, client.ErrUnreachable) {
			refused++
		}
	}
	require.NoError(t, e.D.Nodes()[0].Restart())
	e.D.Load(t)
	e.Eventually("held again", func() bool { _, err := holder.TryAcquire(e.Ctx, "a"); return err == nil })
	e.Eventually("from memory again", cached)
}

// A server that refused the release did not run it: when it says 'not yours' to the next one, the
// lock was lost.
func TestReleaseOfALostLockThatWasRefusedFirst(t *testing.T) {
	e := own(t)
	c := e.open(client.Config{Lease: testbed.Long})
	l := e.Take(c, "a")
	e.admin("DEL", e.Prefix+"a")
	e.admin("REPLICAOF", "127.0.0.1", "1")
	released := make(chan error, 1)
	go func() { released <- l.Release(e.Ctx) }()
	e.Eventually("refused", func() bool { return strings.Contains(e.admin("INFO", "errorstats"), "READONLY") })
	require.Empty(t, released)
	e.admin("REPLICAOF", "NO", "ONE")
	err := testbed.Got(t, released)
	only(t, client.ErrLost, err)
	require.ErrorIs(t, err, client.ErrTaken)
}

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

// AutoLoad is for renewals too: a FUNCTION FLUSH loses no lock.
func TestAutoLoadKeepsHeldLocks(t *testing.T) {
	e := own(t)
	c := e.open(client.Config{Lease: 6 * time.Second, RenewEvery: 500 * time.Millisecond, AutoLoad: true})
	var locks []*client.Lock
	for i := range 20 {
		locks = append(locks, e.Take(c, client.Name(i)))
	}
	e.admin("FUNCTION", "FLUSH")
	e.renewals(client.Name(0), 5)
	for _, l := range locks {
		require.NoError(t, l.Context().Err())
		e.Release(l)
	}
}

func TestMaxRenewalsEndTheWorkWhileOthersComeAndGo(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: testbed.Long, RenewEvery: 2 * time.Second, Grace: testbed.Long})
		l := e.Take(c, "a", client.WithMaxRenewals(1))
		began := time.Now()
		var all sync.WaitGroup
		all.Go(func() {
			each := time.NewTicker(300 * time.Millisecond) // the pace at which they come
			defer each.Stop()
			for l.Context().Err() == nil && time.Since(began) < testbed.Within {
				<-each.C
				_ = e.fcall(functions.Wait, "a", "passer-by", "1000").Error()
				_ = e.fcall(functions.Leave, "a", "passer-by").Error()
			}
		})
		cause := e.Ended(l.Context())
		all.Wait()
		require.ErrorIs(t, cause, client.ErrMaxRenewals)
		require.GreaterOrEqual(t, time.Since(began), 3900*time.Millisecond)
		require.Less(t, time.Since(began), 6*time.Second, "4 s")
	})
}

// A lock that was held for more than a second is known to the server, and its holder hears of its
// loss at once: the next renewal is 10 s away.
func TestTheLossOfALockThatIsHeldForLongerThanASecondIsTold(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, operator := e.open(client.Config{}), e.open(client.Config{})
		broken, deleted := e.Take(c, "broken"), e.Take(c, "deleted")
		taken := time.Now()
		before := e.calls()
		e.Eventually("both looked, so the server tracks them", func() bool { return e.calls() >= before+2 })
		require.Less(t, time.Since(taken), 4*time.Second, "about a second")
		began := time.Now()
		_, err := operator.Break(e.Ctx, "broken", "deploy stuck")
		require.NoError(t, err)
		cause := e.Ended(broken.Context())
		require.Less(t, time.Since(began), 2*time.Second)
		require.ErrorIs(t, cause, client.ErrBroken)
		require.Contains(t, as[*client.LostError](e, cause).Reason, "deploy stuck")
		require.NoError(t, e.Do("deleted", "DEL").Error())
		require.ErrorIs(t, e.Ended(deleted.Context()), client.ErrTaken)
		require.Less(t, time.Since(taken), 9*time.Second)
	})
}

// Where the scheduler is late, a context's Err is not: it is never nil when the lease is over.
func TestErrLooksAtTheClock(t *testing.T) {
	e := own(t)
	c := e.open(client.Config{Lease: 500 * time.Millisecond, NoRenewal: true})
	for range 5 {
		l := e.Take(c, "a")
		late := time.Duration(0)
		processors := runtime.GOMAXPROCS(1) // the loop leaves none to the timers
		for end := time.Now().Add(l.Remaining()); ; {
			now := time.Now()
			if l.Context().Err() != nil {
				break
			}
			late = max(late, now.Sub(end))
		}
		runtime.GOMAXPROCS(processors)
		require.Less(t, late, 100*time.Microsecond, "the context lived on")
		require.ErrorIs(t, context.Cause(l.Context()), client.ErrExpired)
		require.Zero(t, l.Remaining())
		e.Eventually("free", func() bool { return !e.Exists("a") })
	}
}
