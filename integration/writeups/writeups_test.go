package writeups

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
)

// S0 keeps the token in one slot per thread, and writes it before it knows whether it got the lock: a second
// lock, or a try that fails, loses the token of the first. Here each lock is a value.
func TestS0_OneSlotForTheToken(t *testing.T) {
	b := open(t)
	slot := "token of a"
	require.True(t, b.set("naive a", slot, long))
	slot = "token of b"
	require.True(t, b.set("naive b", slot, long))
	require.False(t, b.unset("naive a", slot), "a stays locked until its lease ends")
	slot = "a second try of b"
	require.False(t, b.set("naive b", slot, long))
	require.False(t, b.unset("naive b", slot), "it cannot be released any more")

	c := b.client(client.Config{})
	first, second := b.take(c, "a"), b.take(c, "b")
	_, err := c.TryAcquire(b.Ctx, "b")
	require.ErrorIs(t, err, client.ErrBusy)
	b.Release(first) // the first one first
	b.holder(c, second)
	b.Release(second)
	b.free(c, "a")
	b.free(c, "b")
}

// S1 compares the value and deletes the key in two steps; in between the lease can end and the next
// one lock. Here it is one call; ten times a release meets the very end of its lease, with the next
// one in line.
func TestS1_GetThenDeleteRace(t *testing.T) {
	b := open(t)
	require.True(t, b.set("naive", "a", short))
	got, err := b.Do("naive", "GET").ToString()
	require.NoError(t, err)
	require.Equal(t, "a", got, "still a's: delete it")
	b.expired("naive")
	require.True(t, b.set("naive", "b", long))
	require.True(t, b.del("naive"), "that was b's")

	one, two := b.client(client.Config{}), b.client(client.Config{})
	for range 10 {
		late := b.takeLate(one, "lock")
		next := b.Acquire(b.Ctx, two, "lock")
		<-late.Context().Done()
		// whatever it answers: the lease is at its end
		b.call(functions.Release, "lock", late.Owner())
		l := b.Locked(next).Lock
		require.Greater(t, l.Fence(), late.Fence())
		b.refuses(functions.Release, "lock", late.Owner())
		b.holder(one, l)
		b.Release(l)
	}
}

// S1 renews whatever stands under the key: the lock of the next holder, who may have died.
func TestS1_RenewalOfALockThatIsNotOurs(t *testing.T) {
	b := open(t)
	require.True(t, b.set("naive", "b", short)) // a's lease ended before
	require.True(t, b.Exists("naive"), "a: there is a lock, so renew it")
	require.EqualValues(t, 1, b.number("PEXPIRE", "naive", milliseconds(time.Hour)))
	require.Greater(t, b.ttl("naive"), short, "b's lock, renewed by a")

	one, two := b.client(client.Config{}), b.client(client.Config{})
	late := b.takeLate(one, "lock")
	next := b.take(two, "lock", client.WithoutRenewal())
	b.refuses(functions.Renew, "lock", late.Owner(), milliseconds(time.Hour))
	require.ErrorIs(t, late.Renew(b.Ctx), client.ErrLost)
	require.LessOrEqual(t, b.holder(one, next).Remaining, long+keyOutlives)
}

// S1 keeps a list of what to renew, from which the end of the work removes nothing. Here the end is
// the end.
func TestS1_NothingIsRenewedAfterTheWork(t *testing.T) {
	b := open(t)
	c := b.client(client.Config{Lease: 1500 * time.Millisecond, RenewEvery: 50 * time.Millisecond})
	for range 100 {
		require.NoError(t, c.Do(b.Ctx, "lock", func(context.Context) error { return nil }))
	}
	require.True(t, b.set("lock", "of another service", 400*time.Millisecond))
	b.expired("lock")
}

// When work that S1 ends by a maximum does not even stop within its lease, its release still says why the
// lock ended.
func TestS1_ReleaseLongAfterTheMaximum(t *testing.T) {
	b := open(t)
	hung := b.take(b.client(client.Config{}), "lock",
		client.WithLease(time.Second), client.WithoutRenewal(), client.WithMaxHold(short, long))
	require.ErrorIs(t, b.Ended(hung.Context()), client.ErrMaxHold)
	b.expired("lock")
	require.ErrorIs(t, hung.Release(b.Ctx), client.ErrMaxHold)
}

// S2's first test: a thousand threads that each add one in two steps.
func TestS2_ThousandConcurrentIncrements(t *testing.T) {
	b := open(t)
	const threads = 1000
	add := func(ctx context.Context, read func()) error {
		n, err := b.Redis.Do(ctx, b.Redis.B().Get().Key(b.Prefix+"number").Build()).AsInt64()
		if err != nil {
			return err
		}
		read()
		return b.Redis.Do(ctx, b.Redis.B().Set().Key(b.Prefix+"number").Value(strconv.FormatInt(n+1, 10)).Build()).Error()
	}
	b.number("SET", "number", "0")
	require.NoError(t, add(b.Ctx, func() { require.NoError(t, add(b.Ctx, func() {})) }))
	require.EqualValues(t, 1, b.number("GET", "number"), "without a lock one of two is lost")

	b.number("SET", "number", "0")
	c := b.client(client.Config{})
	var wg sync.WaitGroup
	errs := make([]error, threads)
	for i := range threads {
		wg.Go(func() {
			errs[i] = c.Do(b.Ctx, "counter", func(ctx context.Context) error { return add(ctx, func() {}) })
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.EqualValues(t, threads, b.number("GET", "number"))
}

// S2's registry waits first for its own process and then for Redis, each for as long as it was
// allowed to wait in all.
func TestS2_WaitBoundedOnceNotTwice(t *testing.T) {
	b := open(t)
	b.take(b.client(client.Config{}), "lock")
	c := b.client(client.Config{})
	const bound = 5 * time.Second
	began := time.Now()
	var waiting []<-chan error
	for range 2 { // one of them waits for Redis, the other one for the first
		done := make(chan error, 1)
		go func() {
			_, err := c.Acquire(b.Ctx, "lock", client.WithMaxWait(bound))
			done <- err
		}()
		waiting = append(waiting, done)
	}
	for _, w := range waiting {
		require.ErrorIs(t, <-w, client.ErrTimeout)
		require.GreaterOrEqual(t, time.Since(began), bound)
		require.Less(t, time.Since(began), 2*bound)
	}
}

// S3's lock with a lease passes the default on instead of it.
func TestS3_LeaseArgumentIsUsed(t *testing.T) {
	b := open(t)
	c := b.client(client.Config{Lease: 30 * time.Second})
	for want, opts := range map[time.Duration][]client.Option{
		30 * time.Second: nil,
		7 * time.Second:  {client.WithLease(7 * time.Second)},
		time.Hour:        {client.WithLease(time.Hour), client.WithPolling(3, time.Millisecond)},
		90 * time.Second: {client.WithLease(90 * time.Second), client.WithOwner("batch-7")},
	} {
		l := b.take(c, "lock", opts...)
		require.LessOrEqual(t, b.ttl("lock"), want+keyOutlives)
		require.Greater(t, b.ttl("lock"), want-5*time.Second)
		require.LessOrEqual(t, l.Remaining(), want)
		require.NoError(t, l.Renew(b.Ctx))
		require.Greater(t, b.ttl("lock"), want-5*time.Second, "renewed for the same")
		b.Release(l)
	}
}

// S4's second step, SETNX and then EXPIRE: the crash between the two. Here even one whose answer
// never arrived has set both or nothing.
func TestS4_SetNXThenExpire(t *testing.T) {
	b := openOwn(t)
	require.EqualValues(t, 1, b.number("SETNX", "naive", "1"))
	require.Negative(t, b.ttl("naive"), "crashed before EXPIRE: nothing will ever end it")

	crashes, proxy := b.Through(client.Config{Lease: short})
	proxy.DropReplies(1, functions.Acquire)
	_, err := crashes.TryAcquire(b.Ctx, "lock")
	require.ErrorIs(t, err, client.ErrUnreachable, "nobody can know whether it holds the lock")
	require.Equal(t, 1, proxy.Dropped(), "the server ran it")
	b.Release(b.take(b.client(client.Config{}), "lock"))
}

// S4's third step has an end and no owner: each late holder frees the next one's lock, and so on,
// until all work at the same time. Its later steps compare the owner, in a script.
func TestS4_ReleaseChain(t *testing.T) {
	b := open(t)
	require.True(t, b.set("naive", "1", short)) // A
	b.expired("naive")
	require.True(t, b.set("naive", "1", long)) // B
	require.True(t, b.del("naive"))            // A frees B's
	require.True(t, b.set("naive", "1", long)) // C, while B works
	require.True(t, b.del("naive"))            // B frees C's
	require.True(t, b.set("naive", "1", long)) // D, while C works

	one, two, three := b.client(client.Config{}), b.client(client.Config{}), b.client(client.Config{})
	first := b.takeLate(one, "lock")
	second := b.takeLate(two, "lock") // when the first lease has ended
	require.ErrorIs(t, first.Release(b.Ctx), client.ErrLost)
	b.refuses(functions.Release, "lock", first.Owner())
	third := b.take(three, "lock") // not before the second lease has ended
	require.Zero(t, second.Remaining())
	require.ErrorIs(t, second.Release(b.Ctx), client.ErrLost)
	b.refuses(functions.Release, "lock", second.Owner())
	_, err := one.TryAcquire(b.Ctx, "lock")
	require.ErrorIs(t, err, client.ErrBusy)
	b.holder(one, third)
	require.Less(t, first.Fence(), second.Fence())
	require.Less(t, second.Fence(), third.Fence())
	b.Release(third)
}

// S4's script for re-entry counts holds. One that is released twice counts once: a bare counter would free
// a lock that is still in use.
func TestS4_ReentrantReleaseTwice(t *testing.T) {
	b := open(t)
	for _, change := range []string{"1", "1", "-1"} {
		b.number("HINCRBY", "naive", "a", change)
	}
	require.Zero(t, b.number("HINCRBY", "naive", "a", "-1"), "the same one again, whose first answer was lost: free")

	b.call(functions.AcquireReentrant, "lock", "a", milliseconds(long), "outer")
	b.call(functions.AcquireReentrant, "lock", "a", milliseconds(long), "inner")
	for range 2 {
		reply := b.call(functions.Release, "lock", "a", functions.OptHold, "inner")
		require.EqualValues(t, 1, reply[1], "holds")
	}
	_, err := b.client(client.Config{}).TryAcquire(b.Ctx, "lock")
	require.ErrorIs(t, err, client.ErrBusy)
}
