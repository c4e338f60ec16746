package writeups

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
)

// S1 compares the value and deletes the key in two steps; in between the lease can end and the next
// one lock. Here it is one call; ten times a release meets the very end of its lease, with the next
// one in line.
func TestS1_GetThenDeleteRace(t *testing.T) {
	s := open(t)
	require.True(t, s.plain.lock(s.key("naive"), "a", short))
	require.Equal(t, "a", s.plain.get(s.key("naive")), "still a's: delete it")
	s.plain.expired(s.key("naive"))
	require.True(t, s.plain.lock(s.key("naive"), "b", long))
	require.True(t, s.plain.del(s.key("naive")), "that was b's")

	one, two := s.client(client.Config{}), s.client(client.Config{})
	for range 10 {
		late := s.takeLate(one, "lock")
		next := make(chan *client.Lock, 1)
		go func() {
			l, _ := two.Acquire(s.Ctx, "lock")
			next <- l
		}()
		<-late.Context().Done()
		// whatever it answers: the lease is at its end
		s.call(functions.Release, "lock", late.Owner())
		l := <-next
		require.NotNil(t, l)
		require.Greater(t, l.Fence(), late.Fence())
		s.refuses(functions.Release, "lock", late.Owner())
		s.holder(one, l)
		s.Release(l)
	}
}

// S1 renews whatever stands under the key: the lock of the next holder, who may have died.
func TestS1_RenewalOfALockThatIsNotOurs(t *testing.T) {
	s := open(t)
	require.True(t, s.plain.lock(s.key("naive"), "b", short)) // a's lease ended before
	require.True(t, s.plain.yes("EXISTS", s.key("naive")), "a: there is a lock, so renew it")
	require.True(t, s.plain.yes("PEXPIRE", s.key("naive"), milliseconds(time.Hour)))
	require.Greater(t, s.plain.ttl(s.key("naive")), short, "b's lock, renewed by a")

	one, two := s.client(client.Config{}), s.client(client.Config{})
	late := s.takeLate(one, "lock")
	next := s.take(two, "lock", client.WithoutRenewal())
	s.refuses(functions.Renew, "lock", late.Owner(), milliseconds(time.Hour))
	require.ErrorIs(t, late.Renew(s.Ctx), client.ErrLost)
	require.LessOrEqual(t, s.holder(one, next).Remaining, long+time.Millisecond, "until the first millisecond that is over")
}

// The same with automatic renewal, and the lock of a service that knows only SET NX PX: it ends
// when its own lease does.
func TestS1_RenewalOfAnotherServicesLock(t *testing.T) {
	s := open(t)
	l := s.take(s.client(client.Config{}), "lock", client.WithLease(alive))
	require.True(t, s.plain.yes("SET", s.key("lock"), "of another service", "PX", milliseconds(alive)))
	s.ended(l, client.ErrTaken)
	require.LessOrEqual(t, s.plain.ttl(s.key("lock")), alive)
	require.Error(t, l.Release(s.Ctx))
	require.Equal(t, "of another service", s.plain.get(s.key("lock")))
	s.plain.expired(s.key("lock"))
}

// S1 keeps a list of what to renew, from which the end of the work removes nothing. Here the end is
// the end.
func TestS1_NothingIsRenewedAfterTheWork(t *testing.T) {
	s := open(t)
	c := s.client(client.Config{Lease: alive, RenewEvery: 50 * time.Millisecond})
	for range 100 {
		require.NoError(t, c.Do(s.Ctx, "lock", func(context.Context) error { return nil }))
	}
	require.True(t, s.plain.lock(s.key("lock"), "of another service", 400*time.Millisecond))
	s.plain.expired(s.key("lock"))
}

// S1 ends work that has been renewed too often, by an interrupt; but it does not free the lock, and
// the interrupt can hit whatever the thread does next.
func TestS1_MaximumRenewalsEndTheWork(t *testing.T) {
	s := openOwn(t)
	one, two := s.client(client.Config{Lease: alive, Grace: alive / 3}), s.client(client.Config{})
	before := s.fcalls()
	hung := s.take(one, "lock", client.WithMaxRenewals(2))
	s.ended(hung, client.ErrMaxRenewals)
	require.LessOrEqual(t, s.fcalls()-before, 4, "taken, renewed twice, and once more to leave the channel")
	s.holder(two, hung) // in its grace it can stop in peace

	next := s.take(two, "lock") // which comes free although nobody released it
	require.Greater(t, next.Fence(), hung.Fence())
	require.ErrorIs(t, hung.Release(s.Ctx), client.ErrMaxRenewals)
	s.holder(one, next)
	s.Release(next)

	again := s.take(one, "lock")
	// in the same goroutine, under the same name, beyond what the first was allowed
	s.lives(alive*4/3, again)
	s.Release(again)
}

// When the work does not even stop within its lease, its release still says why the lock ended.
func TestS1_ReleaseLongAfterTheMaximum(t *testing.T) {
	s := open(t)
	hung := s.take(s.client(client.Config{}), "lock", client.WithLease(alive), client.WithoutRenewal(), client.WithMaxHold(short, long))
	s.ended(hung, client.ErrMaxHold)
	s.plain.expired(s.key("lock"))
	require.ErrorIs(t, hung.Release(s.Ctx), client.ErrMaxHold)
}

// The same as a method with an annotation: the work ends, the caller is told why, the lock is free.
func TestS1_MaximumRenewalsOfAFunction(t *testing.T) {
	s := open(t)
	c := s.client(client.Config{Lease: alive, MaxRenewals: 1})
	err := c.Do(s.Ctx, "lock", func(ctx context.Context) error {
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), client.ErrMaxRenewals)
		return nil
	})
	require.ErrorIs(t, err, client.ErrMaxRenewals)
	require.ErrorIs(t, err, client.ErrLost)
	s.free(c, "lock")
}

// S1 stops renewing a lock that is gone, and lets the work go on.
func TestS1_LossEndsTheWork(t *testing.T) {
	s := open(t)
	one, two := s.client(client.Config{Lease: alive}), s.client(client.Config{})
	deleted := s.take(one, "deleted")
	require.True(t, s.plain.del(s.key("deleted")))
	s.ended(deleted, client.ErrTaken)

	broken := s.take(one, "broken")
	_, err := two.Break(s.Ctx, "broken", "it hangs")
	require.NoError(t, err)
	s.ended(broken, client.ErrLost)
}

// S1 looks every two seconds which leases are two thirds over, by whole seconds: one of less than
// six can end in between.
func TestS1_ShortLeasesAreRenewedInTime(t *testing.T) {
	s := open(t)
	c := s.client(client.Config{})
	locks := make([]*client.Lock, 50)
	for i := range locks {
		locks[i] = s.take(c, client.Name("lock", i), client.WithLease(alive))
	}
	s.lives(2*alive, locks...)
	for _, l := range locks {
		s.holder(c, l)
		s.Release(l)
	}
}

// lives requires that locks are held for so long.
func (s *shop) lives(d time.Duration, locks ...*client.Lock) {
	s.TB.Helper()
	select {
	case <-locks[0].Context().Done():
	case <-time.After(d):
	}
	for _, l := range locks {
		require.NoError(s.TB, context.Cause(l.Context()))
	}
}

// S1's example: a service reads the stock, subtracts one and writes it.
func TestS1_StockDeduction(t *testing.T) {
	s := open(t)
	stock := s.key("stock")
	s.plain.set(stock, 2)
	a, b := s.plain.number(stock), s.plain.number(stock)
	s.plain.set(stock, a-1)
	s.plain.set(stock, b-1)
	require.Equal(t, 1, s.plain.number(stock), "two were taken")

	const services, each = 4, 50
	s.plain.set(stock, services*each)
	var wg sync.WaitGroup
	errs := make([]error, services)
	for i := range services {
		c := s.client(client.Config{})
		deduct := func(ctx context.Context) error { return s.plain.add(ctx, stock, -1) }
		wg.Go(func() {
			for n := 0; n < each && errs[i] == nil; n++ {
				errs[i] = c.Do(s.Ctx, "stock-lock", deduct)
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Zero(t, s.plain.number(stock))
}

// S1 waits for five seconds and then throws. Here the error says how long, for whom, and in which
// place of the line.
func TestS1_WaitingEndsInAnError(t *testing.T) {
	s := open(t)
	one, two := s.client(client.Config{}), s.client(client.Config{MaxWait: short})
	l := s.take(one, "lock")
	ran := false
	err := two.Do(s.Ctx, "lock", func(context.Context) error { ran = true; return nil })
	require.False(t, ran)
	require.ErrorIs(t, err, client.ErrTimeout)
	var waited *client.WaitError
	require.ErrorAs(t, err, &waited)
	require.GreaterOrEqual(t, waited.Waited, short)
	require.Equal(t, 1, waited.Position)
	require.Equal(t, l.Owner(), waited.Last.Holder.Owner)
	s.Line(one, "lock", 0)
}
