package conformance

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// One owner string may wait for several locks. A message names the owner and not the lock, so a
// grant of one of them is no grant of the other.
func TestAGrantOfOneLockIsNotOneOfAnother(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		a, b := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		x, y := e.Take(a, "{l}x"), e.Take(a, "{l}y")
		first := e.Acquire(e.Ctx, b, "{l}x", client.WithOwner("job 7"))
		second := e.Acquire(e.Ctx, b, "{l}y", client.WithOwner("job 7"))
		e.Line(a, "{l}x", 1)
		e.Line(a, "{l}y", 1)
		e.Release(y)
		e.Release(e.Locked(second).Lock)
		require.Empty(t, first)
		require.NoError(t, x.Context().Err())
		e.Release(x)
		e.Release(e.Locked(first).Lock)
	})
}

// All holds of an owner end, those of this client before ReleaseOwner returns.
func TestReleaseOwnerEndsTheLocksOfItsClient(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, other := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		l := e.Take(c, "a", client.WithOwner("job 7"))
		require.NoError(t, c.ReleaseOwner(e.Ctx, "a", "job 7"))
		require.Error(t, l.Context().Err())
		require.ErrorIs(t, l.Release(e.Ctx), client.ErrLost)
		e.Release(e.Take(other, "a"))
	})
}

func TestAnEmptyOwnerIsRefused(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		_, err := e.open(client.Config{}).TryAcquire(e.Ctx, "a", client.WithOwner(""), nil)
		only(t, client.ErrInvalid, err)
		require.ErrorIs(t, err, client.ErrArgument)
	})
}

// Locks that end by themselves while their holds are released: neither waits for, nor trips over,
// the other.
func TestHoldsAreReleasedWhileTheLockEnds(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{Lease: 20 * time.Millisecond, NoRenewal: true})
		for range 40 {
			var l *client.Lock
			e.Eventually("it is had; an answer can be later than so short a lease", func() bool {
				var err error
				l, err = c.TryAcquire(e.Ctx, "a", client.WithFreshAnswer())
				return err == nil
			})
			locks := []*client.Lock{l}
			for range 20 {
				if inner, err := c.TryAcquire(l.Context(), "a"); err == nil {
					locks = append(locks, inner)
				}
			}
			<-time.After(l.Remaining()) // the event: both come at once now
			var all sync.WaitGroup
			for _, one := range locks {
				all.Go(func() { _ = one.Release(context.WithoutCancel(e.Ctx)) })
			}
			all.Wait()
			e.Eventually("free", func() bool { return !e.Exists("a") })
		}
	})
}
