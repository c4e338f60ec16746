package writeups

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
)

// S0 begins with setting the key and its expiry one after the other: a client that dies in between
// locks for ever. Here a lock and its lease are one call.
func TestS0_CrashBetweenSetAndExpire(t *testing.T) {
	s := open(t)
	require.True(t, s.plain.yes("SETNX", s.key("naive"), "crashes now"))
	require.Negative(t, s.plain.ttl(s.key("naive")), "nothing will ever end it")

	s.call(functions.Acquire, "lock", "crashes now", milliseconds(short))
	require.LessOrEqual(t, s.leased("lock"), short+keyOutlives)
	s.take(s.client(client.Config{}), "lock") // as soon as the lease has ended
}

// S0's reason for a token: a late holder frees the lock of the next one, who then works without
// protection.
func TestS0_ReleaseOfAnothersLockAfterExpiry(t *testing.T) {
	s := open(t)
	require.True(t, s.plain.lock(s.key("naive"), "1", short)) // T1
	s.plain.expired(s.key("naive"))
	require.True(t, s.plain.lock(s.key("naive"), "1", long)) // T2
	require.True(t, s.plain.del(s.key("naive")))             // T1 is done
	require.True(t, s.plain.lock(s.key("naive"), "1", long), "a third one beside T2")

	one, two := s.client(client.Config{}), s.client(client.Config{})
	late := s.takeLate(one, "lock")
	next := s.take(two, "lock")
	require.ErrorIs(t, late.Release(s.Ctx), client.ErrLost, "it is told")
	s.refuses(functions.Release, "lock", late.Owner()) // and the server would refuse it in any case
	s.holder(two, next)
	s.busy(one, "lock")
}

// S0 keeps the token in one slot per thread: a second lock overwrites the first one's. Here each
// lock is a value.
func TestS0_TwoLocksInOneThread(t *testing.T) {
	s := open(t)
	slot := "token of a"
	require.True(t, s.plain.lock(s.key("naive a"), slot, long))
	slot = "token of b"
	require.True(t, s.plain.lock(s.key("naive b"), slot, long))
	require.True(t, s.plain.unlock(s.key("naive b"), slot))
	require.False(t, s.plain.unlock(s.key("naive a"), slot), "a stays locked until its lease ends")

	c := s.client(client.Config{})
	a, b := s.take(c, "a"), s.take(c, "b")
	require.NotEqual(t, a.Owner(), b.Owner())
	s.Release(a) // the first one first
	s.holder(c, b)
	s.Release(b)
	s.free(c, "a")
	s.free(c, "b")
}

// S0 writes the slot before it knows whether it got the lock: a try that fails loses the token of
// the lock that is held.
func TestS0_FailedRetryKeepsTheHeldLock(t *testing.T) {
	s := open(t)
	slot := "first try"
	require.True(t, s.plain.lock(s.key("naive"), slot, long))
	slot = "second try"
	require.False(t, s.plain.lock(s.key("naive"), slot, long))
	require.False(t, s.plain.unlock(s.key("naive"), slot), "it cannot be released any more")

	c := s.client(client.Config{})
	l := s.take(c, "lock")
	for range 3 {
		s.busy(c, "lock")
	}
	s.holder(c, l)
	s.Release(l)
	s.free(c, "lock")
}

// S0 takes every failure for 'held by another', and by default retries that for ever. Here an
// outage is an error, at once, and not the one of a lock that is held.
func TestS0_RedisDownIsAnErrorNotAnEndlessLoop(t *testing.T) {
	s := openOwn(t)
	c := s.client(client.Config{})
	held := s.takeLate(c, "held")
	require.NoError(t, s.D.Nodes()[0].Kill())

	ran := false
	never := func(context.Context) error { ran = true; return nil }
	_, try := c.TryAcquire(s.Ctx, "lock")
	_, wait := c.Acquire(s.Ctx, "lock")
	_, poll := c.Acquire(s.Ctx, "lock", client.WithPolling(1_000_000, time.Millisecond))
	for _, err := range []error{try, wait, poll, c.Do(s.Ctx, "lock", never)} {
		require.ErrorIs(t, err, client.ErrUnreachable)
		require.NotErrorIs(t, err, client.ErrBusy)
	}
	require.False(t, ran)
	require.NoError(t, s.Ctx.Err(), "none of them waited for the end of time")
	s.ended(held, client.ErrExpired)
}

// The release is no exception. S0 says false; here an outage is an outage, and ends with the lease
// at the latest.
func TestS0_ReleaseDuringAnOutage(t *testing.T) {
	s := openOwn(t)
	c, proxy := s.Through(client.Config{})
	l := s.take(c, "lock", client.WithLease(5*short), client.WithoutRenewal())
	proxy.Stall()
	began := time.Now()
	err := l.Release(s.Ctx)
	proxy.Cut()
	require.ErrorIs(t, err, client.ErrUnreachable)
	require.NotErrorIs(t, err, client.ErrLost)
	require.Less(t, time.Since(began), soon)
	s.Release(s.take(s.client(client.Config{}), "lock"))
}

// S0's aspect returns nil for whatever the method returned once it has failed, and swallows its
// error.
func TestS0_ValueAndErrorOfTheMethodAreKept(t *testing.T) {
	s := open(t)
	c := s.client(client.Config{})
	failure := errors.New("no such order")
	got, err := client.Value(s.Ctx, c, "lock", func(context.Context) (int, error) { return 42, failure })
	require.Equal(t, 42, got)
	require.Same(t, failure, err, "the very error")
	got, err = client.Value(s.Ctx, c, "lock", func(context.Context) (int, error) { return 7, nil })
	require.Equal(t, 7, got)
	require.NoError(t, err)
	require.PanicsWithValue(t, "told", func() {
		_ = c.Do(s.Ctx, "lock", func(context.Context) error { panic("told") })
	})
	s.free(c, "lock") // after a panic too
}

// S0 makes the key of the arguments alone, so that methods with the same arguments share a lock,
// and never gets there because of its default. Here the name says what it is about, and different
// arguments never make the same one.
func TestS0_KeyFromArguments(t *testing.T) {
	s := open(t)
	c := s.client(client.Config{})
	type order struct{ shop, id string }
	name := func(verb string) func(order) string {
		return func(o order) string { return client.Name(verb, o.shop, o.id) }
	}
	inside := func(ctx context.Context, o order) (string, error) {
		s.busy(c, client.Name("pay", o.shop, o.id))     // this one is locked,
		s.free(c, client.Name("pay", o.shop, o.id, "")) // and none that resembles it
		s.free(c, client.Name("pay", o.shop+":"+o.id))
		s.free(c, client.Name("ship", o.shop, o.id))
		s.free(c, client.Name("pay", o.shop, "43"))
		return "paid " + o.id, nil
	}
	pay := client.Wrap(c, name("pay"), inside)
	got, err := pay(s.Ctx, order{"berlin", "42"})
	require.NoError(t, err)
	require.Equal(t, "paid 42", got)
	require.NotEqual(t, client.Name("a:b", "c"), client.Name("a", "b:c"))
	require.NotEqual(t, client.Name("a%3Ab"), client.Name("a:b"))
}

// S0's annotation without a name locks "default", for all methods together.
func TestS0_EmptyNameIsAnError(t *testing.T) {
	s := open(t)
	c := s.client(client.Config{})
	ran := false
	work := client.Wrap(c, func(string) string { return "" }, func(context.Context, string) (int, error) { ran = true; return 1, nil })
	_, err := work(s.Ctx, "anything")
	require.ErrorIs(t, err, client.ErrArgument)
	_, err = c.TryAcquire(s.Ctx, "")
	require.ErrorIs(t, err, client.ErrArgument)
	require.False(t, ran)
	require.False(t, s.plain.yes("EXISTS", s.key("")))
}

// S0 can give up or continue when the lock is held, and both end in a nil that the caller cannot
// tell from the method's.
func TestS0_GiveUpOrWait(t *testing.T) {
	s := open(t)
	one, two := s.client(client.Config{Label: "nightly report"}), s.client(client.Config{})
	l := s.take(one, "lock")
	answer := func(context.Context) (int, error) { return 42, nil }

	got, err := client.TryValue(s.Ctx, two, "lock", answer)
	require.ErrorIs(t, err, client.ErrBusy)
	require.ErrorContains(t, err, "nightly report", "it says who has it")
	require.Zero(t, got)

	type result struct {
		got int
		err error
	}
	waited := make(chan result, 1)
	go func() {
		got, err := client.Value(s.Ctx, two, "lock", answer)
		waited <- result{got, err}
	}()
	s.Line(one, "lock", 1)
	s.Release(l)
	require.Equal(t, result{42, nil}, <-waited)
}

// S0 counts retries, and the pause between them.
func TestS0_RetryCounts(t *testing.T) {
	s := openOwn(t)
	one, two := s.client(client.Config{}), s.client(client.Config{})
	l := s.take(one, "lock")

	const tries, pause = 4, 30 * time.Millisecond
	before := s.fcalls()
	_, err := two.Acquire(s.Ctx, "lock", client.WithPolling(tries, pause))
	require.Equal(t, tries, s.fcalls()-before)
	var gaveUp *client.WaitError
	require.ErrorAs(t, err, &gaveUp)
	require.ErrorIs(t, err, client.ErrBusy)
	require.Equal(t, l.Owner(), gaveUp.Last.Holder.Owner)
	require.GreaterOrEqual(t, gaveUp.Waited, (tries-1)*pause)

	polled := make(chan error, 1)
	before = s.fcalls()
	go func() {
		_, err := two.Acquire(s.Ctx, "lock", client.WithPolling(1_000_000, time.Millisecond))
		polled <- err
	}()
	s.Eventually("a try", func() bool { return s.fcalls() > before })
	s.Release(l)
	require.NoError(t, <-polled, "the first try after that")
}

// S0 answers an interrupt with 'held by another'. Here it is the context's own error, at once, and
// nothing stays behind.
func TestS0_InterruptWhileWaiting(t *testing.T) {
	s := open(t)
	one, two := s.client(client.Config{}), s.client(client.Config{})
	l := s.take(one, "lock")
	shutdown := errors.New("shutting down")
	for _, opts := range [][]client.Option{nil, {client.WithPolling(1_000_000, 5*time.Millisecond)}} {
		ctx, cancel := context.WithCancelCause(s.Ctx)
		waited := make(chan error, 1)
		go func() {
			_, err := two.Acquire(ctx, "lock", opts...)
			waited <- err
		}()
		if opts == nil {
			s.Line(one, "lock", 1)
		}
		cancel(shutdown)
		err := <-waited
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, shutdown.Error())
		require.NotErrorIs(t, err, client.ErrTimeout)
		s.Line(one, "lock", 0)
	}
	s.Release(l)
	s.free(one, "lock")
}
