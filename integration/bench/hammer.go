// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// contender is one goroutine that takes locks.
type contender struct {
	take  func(context.Context, string) (hold, error)
	names []string // one after the other

	beside func(context.Context, wish) (hold, error) // in place of take, if several may have a lock
	limit  int
	from   int // of those that share, who wants it alone differs
}

// lock takes the i-th lock. weight is what it counts inside.
func (c contender) lock(ctx context.Context, i int) (l hold, weight int64, err error) {
	w, weight := wish{name: c.names[i%len(c.names)], limit: c.limit, alone: c.limit == 0 && (c.from+i)%20 == 0}, int64(1)
	if c.beside == nil {
		l, err = c.take(ctx, w.name)
		return l, weight, err
	}
	if w.alone {
		weight = alone
	}
	l, err = c.beside(ctx, w)
	return l, weight, err
}

// alone is the weight of one that wants a lock alone, beside those that share it: more than all of them.
const alone = 1 << 20

// hammer takes locks for the time of the window, after a while of warming up.
type hammer struct {
	warm, window time.Duration
	work         time.Duration // under the lock
	contenders   []contender
	guard        *guard // the critical section, if all take one lock
	phase        atomic.Int32
}

// The phases of a hammer. Only what begins and ends in the window is counted.
const (
	warming = iota
	measuring
	stopped
)

// tally is what came of it.
type tally struct {
	taken, stranded int64 // in all
	served          []int64
	waits           *hdrhistogram.Histogram // ns from asking to having
}

func newTally() *tally {
	return &tally{served: make([]int64, 1), waits: hdrhistogram.New(1, time.Hour.Nanoseconds(), 2)}
}

// Waiters that get nothing for this long after the end, with nobody holding the lock any more, are
// left waiting by their library: even a lock whose holder is gone would have ended with its lease.
const strandedAfter = lease + 5*time.Second

// errStranded ends the context of waiters that their library forgot.
var errStranded = errors.New("left waiting for a free lock")

// run blocks until all contenders had their last turn. Nobody's wait is cut off before, because
// libraries differ in what becomes of a lock whose context ends. The context has a deadline from the
// begin on: without one bsm/redislock waits no longer than its lease.
func (h *hammer) run(ctx context.Context, s *site) (*tally, account, error) {
	ctx, expire := context.WithTimeoutCause(ctx, h.warm+h.window+strandedAfter, errStranded)
	defer expire()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	parts := make([]*tally, len(h.contenders))
	var wg sync.WaitGroup
	for i, c := range h.contenders {
		parts[i] = newTally()
		wg.Go(func() {
			if err := h.contend(ctx, c, parts[i]); err != nil {
				cancel(err)
			}
		})
	}
	spent, err := h.watch(ctx, s)
	h.phase.Store(stopped)
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errStranded) {
		err = cause
	}
	total := merge(parts)
	if err == nil && h.guard != nil {
		err = h.guard.check(total.taken)
	}
	return total, spent, err
}

// watch opens and closes the window, and reads before and after it what was spent.
func (h *hammer) watch(ctx context.Context, s *site) (spent account, err error) {
	if err := sleep(ctx, h.warm); err != nil {
		return spent, err
	}
	before, err := s.account(ctx)
	if err != nil {
		return spent, err
	}
	h.phase.Store(measuring)
	err = sleep(ctx, h.window)
	after, failed := s.account(ctx)
	h.phase.Store(stopped)
	return after.sub(before), errors.Join(err, failed)
}

func (h *hammer) contend(ctx context.Context, c contender, t *tally) error {
	for i := 0; h.phase.Load() != stopped; i++ {
		if i%100 == 0 {
			runtime.Gosched() // a try may be answered without a wait
		}
		asked := time.Now()
		lock, weight, err := c.lock(ctx, i)
		if errors.Is(context.Cause(ctx), errStranded) {
			t.stranded++
			return nil
		}
		if err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		waited := time.Since(asked)
		if h.guard != nil {
			h.guard.enter(weight)
			if h.work > 0 {
				time.Sleep(h.work)
			}
			h.guard.inside.Add(-weight)
		}
		t.taken++
		if h.phase.Load() == measuring {
			t.served[0]++
			_ = t.waits.RecordValue(waited.Nanoseconds()) // it fails above an hour
		}
		if err := lock.Unlock(); err != nil {
			return fmt.Errorf("unlock: %w", err)
		}
	}
	return nil
}

func merge(parts []*tally) *tally {
	total := newTally()
	total.served = nil
	for _, p := range parts {
		total.taken, total.stranded = total.taken+p.taken, total.stranded+p.stranded
		total.served = append(total.served, p.served...)
		total.waits.Merge(p.waits)
	}
	return total
}

// values reduces a run. Costs are for each lock that was taken and released; where none was, only
// the rate is known.
func (t *tally) values(spent account, r rival) values {
	n := float64(t.waits.TotalCount())
	if n == 0 {
		return values{mRate: 0, mStranded: float64(t.stranded)}
	}
	v := values{
		mRate:      n / spent.at.Seconds(),
		mP99:       float64(t.waits.ValueAtQuantile(99)) / 1e3,
		mStranded:  float64(t.stranded),
		mServerCPU: float64(spent.server.Microseconds()) / n,
		mClientCPU: float64(spent.client.Microseconds()) / n,
		mAllocs:    float64(spent.mallocs) / n,
	}
	if fair, known := fairness(t.served); known {
		v[mFair] = fair
	}
	sent := spent.by(r)
	v[mCommands], v[mInCommands] = float64(sent.calls)/n, float64(sent.usec)/n
	return v
}

// guard is the critical section that a lock under test protects. It finds a lock that lets two in at
// once: two that meet inside, or an increment that was lost.
type guard struct {
	most             int64 // that may be inside; 1: the lock is one holder's
	count            int64 // plain: only the lock protects it
	inside, meetings atomic.Int64
}

// enter is called with the lock held. Who leaves counts down inside.
func (g *guard) enter(weight int64) {
	if g.inside.Add(weight) > g.most {
		g.meetings.Add(1)
	}
	if g.most == 1 {
		g.count++
	}
}

// check compares with how often the lock was taken in all.
func (g *guard) check(taken int64) error {
	if n := g.meetings.Load(); n > 0 {
		return fmt.Errorf("the lock is broken: %d times too many were in the critical section", n)
	}
	if g.most == 1 && g.count != taken {
		return fmt.Errorf("the lock is broken: taken %d times, counted %d", taken, g.count)
	}
	return nil
}

// sleep lets the measured time pass.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("not measured to the end"), context.Cause(ctx))
	}
}
