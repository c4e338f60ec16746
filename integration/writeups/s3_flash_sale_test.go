package writeups

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

// S3's test, by several services at the same time: ten in stock, a hundred buyers.
func TestS3_StockMustNotBeOversold(t *testing.T) {
	s := open(t)
	const stock, services, buyers = 10, 4, 25
	goods := s.key("stock")
	s.plain.set(goods, stock)
	var (
		wg                sync.WaitGroup
		mu                sync.Mutex
		sold, none, wrong int
	)
	for range services {
		c := s.client(client.Config{})
		for range buyers {
			wg.Go(func() {
				err := c.Do(s.Ctx, "goods", func(ctx context.Context) error { return s.plain.add(ctx, goods, -1) })
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					sold++
				case errors.Is(err, errSoldOut):
					none++
				default:
					wrong++
				}
			})
		}
	}
	wg.Wait()
	require.Equal(t, []int{stock, services*buyers - stock, 0}, []int{sold, none, wrong})
	require.Zero(t, s.plain.number(goods))
}

// S3's sample does not look at what lock() returned: who waited in vain sells all the same. Here a
// function does not run without its lock.
func TestS3_SampleIgnoringTheLockResult(t *testing.T) {
	s := open(t)
	goods := s.key("stock")
	s.plain.set(goods, 1)
	sold := 0
	require.True(t, s.plain.lock(s.key("naive"), "a", long))
	a := s.plain.number(goods)
	_ = s.plain.lock(s.key("naive"), "b", long) // false, and nobody looks
	b := s.plain.number(goods)
	for _, n := range []int{a, b} {
		if n > 0 {
			s.plain.set(goods, n-1)
			sold++
		}
	}
	require.Equal(t, 2, sold, "of one")

	s.plain.set(goods, 1)
	one, two := s.client(client.Config{}), s.client(client.Config{MaxWait: short})
	sold = 0
	sell := func(ctx context.Context) error {
		sold++
		return s.plain.add(ctx, goods, -1)
	}
	require.NoError(t, one.Do(s.Ctx, "goods", func(ctx context.Context) error {
		require.ErrorIs(t, two.Do(s.Ctx, "goods", sell), client.ErrTimeout)
		return sell(ctx)
	}))
	require.Equal(t, 1, sold)
	require.Zero(t, s.plain.number(goods))
}

// S3's lock with a lease passes the default on instead of it.
func TestS3_LeaseArgumentIsUsed(t *testing.T) {
	s := open(t)
	c := s.client(client.Config{Lease: 30 * time.Second})
	for _, test := range []struct {
		opts []client.Option
		want time.Duration
	}{
		{nil, 30 * time.Second},
		{[]client.Option{client.WithLease(7 * time.Second)}, 7 * time.Second},
		{[]client.Option{client.WithLease(time.Hour), client.WithPolling(3, time.Millisecond)}, time.Hour},
		{[]client.Option{client.WithLease(90 * time.Second), client.WithOwner("batch-7")}, 90 * time.Second},
	} {
		l := s.take(c, "lock", test.opts...)
		ttl := s.leased("lock")
		require.LessOrEqual(t, ttl, test.want+keyOutlives)
		require.Greater(t, ttl, test.want-5*time.Second)
		require.LessOrEqual(t, l.Remaining(), test.want)
		require.NoError(t, l.Renew(s.Ctx))
		require.Greater(t, s.leased("lock"), test.want-5*time.Second, "renewed for the same")
		s.Release(l)
	}
}

// keyOutlives is how much longer the key lives than the lease, which holds through its last
// millisecond.
const keyOutlives = time.Millisecond

// A lock that was waited for has the lease that it was asked for too, once it is confirmed.
func TestS3_LeaseArgumentIsUsedAfterWaiting(t *testing.T) {
	s := open(t)
	one, two := s.client(client.Config{}), s.client(client.Config{})
	first := s.take(one, "lock")
	got := make(chan *client.Lock, 1)
	go func() {
		l, _ := two.Acquire(s.Ctx, "lock", client.WithLease(7*time.Second))
		got <- l
	}()
	s.Line(one, "lock", 1)
	s.Release(first)
	l := <-got
	require.NotNil(t, l)
	require.NoError(t, l.Renew(s.Ctx))
	require.LessOrEqual(t, s.leased("lock"), 7*time.Second+keyOutlives)
	require.Greater(t, s.leased("lock"), 2*time.Second)
	s.Release(l)
}

// S3 has a constant for milliseconds where the number of retries belongs: thirty thousand of them.
// Here they have names.
func TestS3_RetryCounts(t *testing.T) {
	s := openOwn(t)
	one, two := s.client(client.Config{}), s.client(client.Config{})
	s.take(one, "lock")
	for _, test := range []struct {
		opts  []client.Option
		tries int
		pause time.Duration
	}{
		{[]client.Option{client.WithPolling(2, 40*time.Millisecond)}, 2, 40 * time.Millisecond},
		{[]client.Option{client.WithPolling(1, time.Hour)}, 1, 0},
		{[]client.Option{client.WithPolling(5, 10*time.Millisecond)}, 5, 10 * time.Millisecond},
	} {
		before, began := s.fcalls(), time.Now()
		_, err := two.Acquire(s.Ctx, "lock", test.opts...)
		require.ErrorIs(t, err, client.ErrBusy)
		require.Equal(t, test.tries, s.fcalls()-before)
		require.GreaterOrEqual(t, time.Since(began), time.Duration(test.tries-1)*test.pause)
	}
}
