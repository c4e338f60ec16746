package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

func TestWaiterGetsTheLockByMessage(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:6379")
		load(t, n)
		a, b := open(t, w, "a", "a:6379"), open(t, w, "b", "a:6379")
		defer a.Close()
		defer b.Close()
		l := must(a.Acquire(ctx, "x"))
		got := make(chan *client.Lock)
		go func() { got <- must(b.Acquire(ctx, "x")) }()
		time.Sleep(time.Second)
		start := time.Now()
		if err := l.Release(ctx); err != nil {
			t.Fatal(err)
		}
		m := <-got
		if took := time.Since(start); took > 5*time.Millisecond {
			t.Errorf("handed over after %v: no message came", took)
		}
		if m.Fence() <= l.Fence() {
			t.Errorf("fence %d after %d", m.Fence(), l.Fence())
		}
		if err := m.Release(ctx); err != nil {
			t.Fatal(err)
		}
		expect(t, n.Do("EXISTS", "lock:x"), int64(0))
	})
}

func TestAnHourOfRenewals(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:6379")
		load(t, n)
		a := open(t, w, "a", "a:6379")
		defer a.Close()
		l := must(a.Acquire(ctx, "x"))
		before := n.Calls()
		time.Sleep(time.Hour)
		if err := l.Context().Err(); err != nil {
			t.Fatal(context.Cause(l.Context()))
		}
		if renewals := n.Calls() - before; renewals < 360 {
			t.Errorf("%d calls in an hour", renewals)
		}
	})
}

func TestBreakTellsTheHolder(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:6379")
		load(t, n)
		a := open(t, w, "a", "a:6379")
		defer a.Close()
		l := must(a.Acquire(ctx, "x"))
		time.Sleep(15 * time.Second) // the server tracks the key since the first renewal
		start := time.Now()
		n.Do("FCALL", functions.Break, "1", "lock:x", functions.OptReason, "maintenance")
		<-l.Context().Done()
		if took := time.Since(start); took > 5*time.Millisecond {
			t.Errorf("told after %v", took)
		}
		var lost *client.LostError
		if !errors.As(context.Cause(l.Context()), &lost) {
			t.Errorf("cause %v", context.Cause(l.Context()))
		}
	})
}

func TestStalledHolderLosesItsLockBeforeAnotherGetsIt(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:6379")
		load(t, n)
		a, b := open(t, w, "a", "a:6379"), open(t, w, "b", "a:6379")
		defer b.Close()
		l := must(a.Acquire(ctx, "x"))
		start := time.Now()
		stalled := redis.Path{Host: "a"}
		w.Stall(stalled, redis.Both)
		m := must(b.Acquire(ctx, "x"))
		if l.Context().Err() == nil {
			t.Error("two holders")
		}
		if took := time.Since(start); took < 30*time.Second || took > 32*time.Second {
			t.Errorf("taken after %v", took)
		}
		w.Resume(stalled)
		if err := m.Release(ctx); err != nil {
			t.Error(err)
		}
		a.Close()
	})
}

func TestTrackingInvalidatesAcrossClients(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:6379")
		load(t, n)
		a, b := open(t, w, "a", "a:6379"), open(t, w, "b", "a:6379")
		defer a.Close()
		defer b.Close()
		l := must(a.Acquire(ctx, "x"))
		if _, err := b.TryAcquire(ctx, "x"); !errors.Is(err, client.ErrBusy) {
			t.Fatalf("try: %v", err)
		}
		before := n.Calls()
		for range 100 {
			if _, err := b.TryAcquire(ctx, "x"); !errors.Is(err, client.ErrBusy) {
				t.Fatalf("try: %v", err)
			}
		}
		if asked := n.Calls() - before; asked > 3 {
			t.Errorf("%d calls for 100 tries of a lock that is known to be held", asked)
		}
		if err := l.Release(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		m := must(b.TryAcquire(ctx, "x"))
		if err := m.Release(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

// The deadline of one call is not that of others which are on their way behind it.
func TestADeadlineOfOneCallIsNotAnothers(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:6379")
		load(t, n)
		c := must(client.Open(rueidis.ClientOption{InitAddress: []string{"a:6379"}, ForceSingleClient: true, MaxFlushDelay: -1,
			DisableCache: true, DialCtxFn: w.Host("h").Dial}, client.Config{}))
		defer c.Close()
		if err := must(c.TryAcquire(ctx, "x")).Release(ctx); err != nil {
			t.Fatal(err)
		}
		n.Pause()
		first := make(chan error, 1)
		go func() {
			soon, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := c.TryAcquire(soon, "x")
			first <- err
		}()
		time.Sleep(100 * time.Millisecond)
		second := make(chan error, 1)
		go func() {
			_, err := c.TryAcquire(ctx, "y")
			second <- err
		}()
		if err := <-first; !errors.Is(err, client.ErrUnreachable) {
			t.Errorf("the first call: %v", err)
		}
		n.Continue()
		if err := <-second; err != nil {
			t.Errorf("the second call: %v", err)
		}
	})
}

// A renewal whose answer comes when the lease is over here does not say that the lock is held.
func TestRenewOfALockThatIsLostMeanwhileFails(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:1")
		load(t, n)
		c := open(t, w, "client", "a:1")
		defer c.Close()
		l := must(c.Acquire(ctx, "x", client.WithLease(time.Second), client.WithoutRenewal()))
		time.Sleep(500 * time.Millisecond)
		w.Stall(redis.Path{Node: n}, redis.Both)
		time.AfterFunc(2*time.Second, func() { w.Resume(redis.Path{Node: n}) })
		if err := l.Renew(ctx); !errors.Is(err, client.ErrExpired) {
			t.Errorf("Renew of a lock that had ended: %v", err)
		}
	})
}
