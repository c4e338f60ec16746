package failure

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// turn is one time that a worker held the lock, by its own judgement: it was sure at both moments.
type turn struct {
	worker   int
	fence    int64
	from, to time.Time
}

// history is all turns of a lock.
type history struct {
	b      *bed
	mu     sync.Mutex
	all    []turn
	broken map[int64]bool // tokens whose lock was taken away: their work may overlap the next
}

func newHistory(b *bed) *history { return &history{b: b, broken: map[int64]bool{}} }

func (h *history) turns() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

func (h *history) add(t turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, t)
}

// longest is the longest time that a worker was sure of the lock.
func (h *history) longest() (most time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.all {
		most = max(most, t.to.Sub(t.from))
	}
	return most
}

// gap is the longest time in which nobody was sure of it.
func (h *history) gap() (most time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := 1; i < len(h.all); i++ { // turns are added at their end, so in order
		most = max(most, h.all[i].from.Sub(h.all[i-1].to))
	}
	return most
}

// hold looks at a lock for a while: until the turn is over or the lock is lost.
func (h *history) hold(l *client.Lock, worker int, length time.Duration) {
	t := turn{worker: worker, fence: l.Fence()}
	over := time.After(length)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		now := time.Now()
		if l.Remaining() <= 0 || l.Context().Err() != nil {
			break
		}
		if t.from.IsZero() {
			t.from = now
		}
		t.to = now
		select {
		case <-tick.C:
			continue
		case <-l.Context().Done():
		case <-over:
		}
		break
	}
	if !t.from.IsZero() {
		h.add(t)
	}
}

// work takes turns until stop is closed. Outages are expected: it comes again.
func (h *history) work(c *client.Client, name string, worker int, stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(h.b.Ctx)
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	for ctx.Err() == nil {
		l, err := c.Acquire(ctx, name)
		if errors.Is(err, client.ErrClosed) {
			return
		}
		if err != nil {
			select {
			case <-time.After(10 * time.Millisecond): // what a caller does: not at once again
			case <-ctx.Done():
			}
			continue
		}
		h.hold(l, worker, time.Duration(rand.IntN(12))*time.Millisecond)
		_ = l.Release(ctx) // a lost one is what this test makes
	}
}

// check asserts that turns do not overlap and that tokens grow with them.
func (h *history) check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := slices.DeleteFunc(slices.Clone(h.all), func(t turn) bool { return h.broken[t.fence] })
	slices.SortFunc(kept, func(a, b turn) int { return a.from.Compare(b.from) })
	workers := map[int]int{}
	for i, now := range kept {
		workers[now.worker]++
		if i == 0 {
			continue
		}
		last := kept[i-1]
		require.False(t, now.from.Before(last.to), "two holders: %+v and %+v", last, now)
		require.Greater(t, now.fence, last.fence, "%+v after %+v", now, last)
	}
	t.Logf("%d turns in order, %d broken, by worker: %v", len(kept), len(h.broken), workers)
}

// Many clients take turns while connections stall and are cut, clients die with the lock, and an
// operator breaks it.
func TestHistory(t *testing.T) {
	b := single(t)
	h := newHistory(b)
	const name, lease = "a", 400 * time.Millisecond
	stop := make(chan struct{})
	var workers, faults sync.WaitGroup
	for i := range 6 {
		c, proxy := b.through(lease)
		workers.Go(func() { h.work(c, name, i, stop) })
		if i < 4 {
			faults.Go(func() { b.torment(proxy, i, stop) })
		}
	}
	faults.Go(func() { h.die(name, lease, stop) })
	faults.Go(func() { h.breakIn(name, stop) })
	<-time.After(12 * time.Second) // the length of the test, not an event
	close(stop)
	workers.Wait()
	faults.Wait()
	require.Greater(t, h.turns(), 50)
	h.check(t)
	b.Eventually("no lock is left", func() bool { return !b.Exists(name) })
}

// every calls f at random times until stop is closed.
func every(mean time.Duration, stop <-chan struct{}, f func()) {
	for {
		select {
		case <-time.After(mean/2 + rand.N(mean)):
			f()
		case <-stop:
			return
		}
	}
}

func (b *bed) torment(proxy faulty, i int, stop <-chan struct{}) {
	every(900*time.Millisecond, stop, func() {
		if i%2 == 0 {
			proxy.Cut()
			return
		}
		proxy.Stall()
		<-time.After(rand.N(700 * time.Millisecond)) // shorter and longer than the lease
		proxy.Resume()
	})
	proxy.Resume()
}

type faulty interface {
	Cut()
	Stall()
	Resume()
}

// die takes the lock with a client of its own and ends that without a release, as a killed process
// does.
func (h *history) die(name string, lease time.Duration, stop <-chan struct{}) {
	every(1500*time.Millisecond, stop, func() {
		c := h.b.open(lease)
		ctx, cancel := context.WithTimeout(h.b.Ctx, 5*time.Second)
		defer cancel()
		l, err := c.Acquire(ctx, name)
		if err == nil {
			h.hold(l, 100, 3*time.Millisecond)
		}
		c.Close()
	})
}

func (h *history) breakIn(name string, stop <-chan struct{}) {
	c := h.b.open(testbed.Long)
	every(700*time.Millisecond, stop, func() {
		info, err := c.Break(h.b.Ctx, name, "test")
		if err != nil {
			h.b.TB.Error(err)
		}
		if info.Held {
			h.mu.Lock()
			h.broken[info.Fence] = true
			h.mu.Unlock()
		}
	})
}
