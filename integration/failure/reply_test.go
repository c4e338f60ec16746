package failure

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// losing makes the proxy lose the next reply to a function, which call makes, or the client by itself. It blocks
// until the proxy did.
func (b *bed) losing(proxy *server.Proxy, function string, call func()) {
	b.TB.Helper()
	proxy.DropReplies(1, function)
	call()
	b.Eventually("the reply to "+function+" is lost", func() bool { return proxy.Dropped() == 1 })
}

func TestALostReplyToAcquire(t *testing.T) {
	b := single(t)
	c, proxy := b.through(testbed.Long)
	for range 3 {
		b.losing(proxy, "holdfast_acquire", func() {
			_, err := c.TryAcquire(b.Ctx, "a")
			require.ErrorIs(t, err, client.ErrUnreachable)
			require.NotErrorIs(t, err, client.ErrBusy)
		})
		b.Eventually("no lock is left behind", func() bool { return !b.Exists("a") })
	}
	b.Release(b.Take(b.open(testbed.Long), "a"))
}

func TestALostReplyToWait(t *testing.T) {
	b := single(t)
	holder := b.open(testbed.Long)
	c, proxy := b.through(testbed.Long)
	l := b.Take(holder, "a")
	var waiting <-chan testbed.Outcome
	// Of the first one: there may be a place in line, which asking again finds.
	b.losing(proxy, "holdfast_wait", func() { waiting = b.Acquire(b.Ctx, c, "a") })
	b.Line(holder, "a", 1)
	b.losing(proxy, "holdfast_wait", func() {}) // the place is kept
	b.Release(l)
	next := b.Locked(waiting).Lock
	require.Greater(t, next.Fence(), l.Fence())
	b.Release(next)
	require.False(t, b.Exists("a"))

	// The reply that says 'taken' is lost: of the first Acquire that asks by wait, because the lock was
	// refused just now, and the client is subscribed again.
	proxy.DropReplies(1, "holdfast_wait")
	for proxy.Dropped() == 0 {
		held := b.Take(holder, "b")
		_, err := c.TryAcquire(b.Ctx, "b")
		require.ErrorIs(t, err, client.ErrBusy)
		b.Release(held)
		l = b.Locked(b.Acquire(b.Ctx, c, "b")).Lock
		require.NoError(t, l.Renew(b.Ctx))
		b.Release(l)
		require.False(t, b.Exists("b"))
	}
}

func TestALostReplyToRelease(t *testing.T) {
	b := single(t)
	c, proxy := b.through(testbed.Long)
	// 'Not yours' after a lost reply means that it was done.
	release := func(l *client.Lock) { b.losing(proxy, "holdfast_release", func() { b.Release(l) }) }
	l := b.Take(c, "a")
	next := b.Acquire(b.Ctx, b.open(testbed.Long), "a")
	b.Line(c, "a", 1)
	release(l)
	o := b.Locked(next)
	require.NoError(t, o.Lock.Renew(b.Ctx), "the repeat left the next holder alone")
	b.Release(o.Lock)

	// Without a line, and with a hold of its own.
	outer, inner := b.Take(c, "a", client.WithOwner("job 42")), b.Take(c, "a", client.WithOwner("job 42"))
	release(inner)
	require.NoError(t, outer.Renew(b.Ctx))
	release(outer)
	require.False(t, b.Exists("a"))
}
