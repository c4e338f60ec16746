package writeups

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
)

// S4's first step, SETNX alone: when its holder crashes, only an operator can free the lock. Here
// no function leaves a key without an end, and the lock of a process that was killed goes to the
// next one.
func TestS4_SetNXWithoutTTL(t *testing.T) {
	s := open(t)
	require.True(t, s.plain.yes("SETNX", s.key("naive"), "1"))
	require.Negative(t, s.plain.ttl(s.key("naive")))

	ttl := milliseconds(long)
	for _, call := range [][]string{
		{functions.AcquireReentrant, "a", ttl, "hold 1"},
		{functions.AcquireReentrant, "a", ttl, "hold 2"},
		{functions.Renew, "a", ttl},
		{functions.Release, "a", functions.OptHold, "hold 1"},
		{functions.Wait, "b", ttl},
		{functions.Wait, "c", ttl},
		{functions.Leave, "c"},
		{functions.Release, "a", functions.OptHold, "hold 2"}, // to b
		{functions.Wait, "d", ttl},
		{functions.Break, functions.OptReason, "for the test"}, // to d
		{functions.Acquire, "d", ttl},
	} {
		s.call(call[0], "lock", call[1:]...)
		s.leased("lock")
	}
	s.call(functions.Release, "lock", "d")
	s.leased("lock") // the record of the break is left, with an end

	holder := s.process("hold", 0)
	owner := holder.Hear("holds")
	holder.Signal(syscall.SIGKILL)
	c := s.client(client.Config{})
	require.Equal(t, owner, s.busy(c, "lock").Holder.Owner)
	s.Release(s.take(c, "lock"))
}

// S4's second step, SETNX and then EXPIRE: the crash between the two. Here even one whose answer
// never arrived has set both or nothing.
func TestS4_SetNXThenExpire(t *testing.T) {
	s := openOwn(t)
	require.True(t, s.plain.yes("SETNX", s.key("naive"), "1"))
	require.Negative(t, s.plain.ttl(s.key("naive")), "crashed before EXPIRE")

	crashes, proxy := s.Through(client.Config{Lease: short})
	proxy.DropReplies(1, functions.Acquire)
	_, err := crashes.TryAcquire(s.Ctx, "lock")
	require.ErrorIs(t, err, client.ErrUnreachable, "nobody can know whether it holds the lock")
	require.Equal(t, 1, proxy.Dropped(), "the server ran it")
	s.Release(s.take(s.client(client.Config{}), "lock"))
}

// S4's third step has an end and no owner: each late holder frees the next one's lock, and so on,
// until all work at the same time.
func TestS4_ReleaseChain(t *testing.T) {
	s := open(t)
	key := s.key("naive")
	require.True(t, s.plain.lock(key, "1", short)) // A
	s.plain.expired(key)
	require.True(t, s.plain.lock(key, "1", long)) // B
	require.True(t, s.plain.del(key))             // A frees B's
	require.True(t, s.plain.lock(key, "1", long)) // C, while B works
	require.True(t, s.plain.del(key))             // B frees C's
	require.True(t, s.plain.lock(key, "1", long)) // D, while C works

	a, b, c := s.client(client.Config{}), s.client(client.Config{}), s.client(client.Config{})
	first := s.takeLate(a, "lock")
	second := s.takeLate(b, "lock") // when the first lease has ended
	require.ErrorIs(t, first.Release(s.Ctx), client.ErrLost)
	s.refuses(functions.Release, "lock", first.Owner())
	third := s.take(c, "lock") // not before the second lease has ended
	require.Zero(t, second.Remaining())
	require.ErrorIs(t, second.Release(s.Ctx), client.ErrLost)
	s.refuses(functions.Release, "lock", second.Owner())
	s.busy(a, "lock")
	s.holder(a, third)
	require.Less(t, first.Fence(), second.Fence())
	require.Less(t, second.Fence(), third.Fence())
	s.Release(third)
}

// S4's third step by itself: DEL by somebody who never had the lock. Nobody can forbid a DEL; but
// its victim hears of it, and a release by a stranger is refused.
func TestS4_ForeignDEL(t *testing.T) {
	s := open(t)
	require.True(t, s.plain.lock(s.key("naive"), "1", long))
	require.True(t, s.plain.del(s.key("naive")))

	c := s.client(client.Config{Lease: alive})
	l := s.take(c, "lock")
	s.refuses(functions.Release, "lock", "a stranger")
	s.holder(c, l)
	require.True(t, s.plain.del(s.key("lock")))
	s.ended(l, client.ErrTaken)
	require.ErrorIs(t, l.Release(s.Ctx), client.ErrLost)
}

// S4's fourth step, a value to compare, is a race between GET and DEL. Its fifth makes them one
// script. Here a whole turn is two calls of functions, and nothing else that could interleave.
func TestS4_GetDelRace(t *testing.T) {
	s := openOwn(t)
	require.True(t, s.plain.lock(s.key("naive"), "a", short))
	mine := s.plain.get(s.key("naive")) == "a"
	s.plain.expired(s.key("naive"))
	require.True(t, s.plain.lock(s.key("naive"), "b", long))
	require.True(t, mine && s.plain.del(s.key("naive")), "b's")
	require.True(t, s.plain.lock(s.key("naive"), "b", long))
	require.False(t, s.plain.unlock(s.key("naive"), "a"), "the script")

	c := s.client(client.Config{})
	before := s.fcalls()
	s.Release(s.take(c, "lock"))
	require.Equal(t, 2, s.fcalls()-before)
	late := s.takeLate(c, "lock")
	s.plain.expired(s.key("lock"))
	s.call(functions.Acquire, "lock", "b", milliseconds(long))
	s.refuses(functions.Release, "lock", late.Owner())
	s.refuses(functions.Renew, "lock", late.Owner(), milliseconds(long))
}

// S4's script for re-entry counts holds, and answers losers with what is left of the lease.
func TestS4_ReentrantCountsAndTimeForLosers(t *testing.T) {
	s := open(t)
	one, two := s.client(client.Config{}), s.client(client.Config{})
	outer := s.take(one, "lock", client.WithLease(20*time.Second), client.WithOwner("invoices"))
	inner, err := one.TryAcquire(outer.Context(), "lock")
	require.NoError(t, err)
	innermost, err := one.TryAcquire(inner.Context(), "lock")
	require.NoError(t, err)
	other, err := two.TryAcquire(s.Ctx, "lock", client.WithOwner(outer.Owner()))
	require.NoError(t, err, "another process that was told the owner")
	require.Equal(t, 2, s.holder(two, outer).Holds, "one for each process")

	stranger := s.client(client.Config{})
	busy := s.busy(stranger, "lock")
	require.Equal(t, outer.Owner(), busy.Holder.Owner)
	require.Greater(t, busy.Remaining, 10*time.Second)
	for _, l := range []*client.Lock{innermost, inner, other} {
		require.LessOrEqual(t, s.busy(stranger, "lock").Remaining, long+time.Millisecond)
		s.Release(l)
	}
	require.Equal(t, 1, s.holder(two, outer).Holds)
	s.Release(outer)
	s.free(stranger, "lock")
}

// A hold that is released twice counts once: a bare counter would free a lock that is still in use.
func TestS4_ReentrantReleaseTwice(t *testing.T) {
	s := open(t)
	key, ttl := s.key("naive"), milliseconds(long)
	require.True(t, s.plain.yes("HINCRBY", key, "a", "1"))
	require.True(t, s.plain.yes("HINCRBY", key, "a", "1"))
	require.True(t, s.plain.yes("HINCRBY", key, "a", "-1"))
	require.False(t, s.plain.yes("HINCRBY", key, "a", "-1"), "the same one again, whose first answer was lost: free")

	s.call(functions.AcquireReentrant, "lock", "a", ttl, "outer")
	s.call(functions.AcquireReentrant, "lock", "a", ttl, "inner")
	for range 2 {
		reply := s.call(functions.Release, "lock", "a", functions.OptHold, "inner")
		holds, err := reply[1].AsInt64()
		require.NoError(t, err)
		require.EqualValues(t, 1, holds)
	}
	_, err := s.client(client.Config{}).TryAcquire(context.WithoutCancel(s.Ctx), "lock")
	require.ErrorIs(t, err, client.ErrBusy)
}
