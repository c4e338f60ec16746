package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// contender is one goroutine that takes locks.
type contender struct {
	locker locker
	names  []string // in turn
}

// hammer takes locks for a time.
type hammer struct {
	contenders []contender
	hold       time.Duration // how long each hold lasts
	guard      *guard        // the critical section, if all take one lock
	begin, end time.Time     // what is measured; before is warm-up
	onBegin    func() error  // called at begin and end, to read meters
	onEnd      func() error
}

// tally is what came of it. It crosses processes as JSON.
type tally struct {
	Taken  int64 // in all, for the guard
	Served []int64
	Waits  *histogram // from asking to having
	Idle   *histogram // from the end of one hold to the begin of the next
	Effort effort     // of the process, while measured
	Lasted time.Duration
	// Stranded are those that still waited when the lock had been free for longer than a lease.
	Stranded int64
}

// failure keeps the first error of several goroutines.
type failure struct {
	once sync.Once
	err  error
	set  atomic.Bool
}

func (f *failure) report(err error) {
	f.once.Do(func() { f.err = err; f.set.Store(true) })
}

// A hammer's waiters that get nothing for this long, after the end and with nobody holding the lock
// any more, are left waiting by their library: even a lock whose holder is gone would have ended
// with its lease.
const strandedAfter = lease + 2*time.Second

// errStranded ends the context of waiters that their library forgot.
var errStranded = errors.New("left waiting for a free lock")

// run blocks until all contenders had their last turn: nobody's wait is cut off, because libraries
// differ in what becomes of a lock whose context ends.
func (h hammer) run(ctx context.Context) (tally, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// bsm/redislock needs a deadline to wait for longer than its lease; rueidislock shortens the
	// lease to it.
	ctx, expire := context.WithDeadline(ctx, h.end.Add(time.Hour))
	defer expire()
	var measured, stopped atomic.Bool
	var turns atomic.Int64 // since the end
	var fail failure
	parts := make([]tally, len(h.contenders))
	var wg sync.WaitGroup
	for i := range h.contenders {
		parts[i] = tally{Served: make([]int64, 1), Waits: newHistogram(), Idle: newHistogram()}
		wg.Go(func() {
			if err := h.contend(ctx, h.contenders[i], &parts[i], &measured, &stopped); err != nil {
				fail.report(err)
				cancel(err)
			}
			turns.Add(1)
		})
	}
	effort, lasted, err := h.measure(ctx, &measured)
	stopped.Store(true)
	strand(&wg, &turns, cancel)
	total := merge(parts)
	total.Effort, total.Lasted = effort, lasted
	if fail.set.Load() {
		err = fail.err
	}
	return total, err
}

// strand blocks until all contenders are done, and gives up those that are left when none was for
// strandedAfter.
func strand(wg *sync.WaitGroup, turns *atomic.Int64, cancel context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	for last := int64(0); ; {
		select {
		case <-done:
			return
		case <-time.After(strandedAfter):
			if now := turns.Load(); now == last {
				cancel(errStranded)
			} else {
				last = now
			}
		}
	}
}

// measure opens and closes the measured time. Both meters of the server are read just before, so
// that locks and costs are of the same time even where a reading takes long.
func (h hammer) measure(ctx context.Context, measured *atomic.Bool) (spent effort, lasted time.Duration, err error) {
	mark := func(at time.Time, read func() error) (effort, time.Time, error) {
		if err := sleepUntil(ctx, at); err != nil {
			return effort{}, time.Time{}, err
		}
		if read != nil {
			if err := read(); err != nil {
				return effort{}, time.Time{}, err
			}
		}
		return effortNow(), time.Now(), nil
	}
	before, from, err := mark(h.begin, h.onBegin)
	if err != nil {
		return effort{}, 0, err
	}
	measured.Store(true)
	after, to, err := mark(h.end, h.onEnd)
	measured.Store(false)
	return after.sub(before), to.Sub(from), err
}

func (h hammer) contend(ctx context.Context, c contender, t *tally, measured, stopped *atomic.Bool) error {
	for i := 0; !stopped.Load(); i++ {
		asked := time.Now()
		lock, err := c.locker.Lock(ctx, c.names[i%len(c.names)])
		if err != nil {
			if errors.Is(context.Cause(ctx), errStranded) {
				t.Stranded++
				return nil
			}
			return fmt.Errorf("lock: %w", err)
		}
		waited := time.Since(asked)
		idle := time.Duration(0)
		if h.guard != nil {
			idle = h.guard.enter()
		}
		if h.hold > 0 && !stopped.Load() {
			time.Sleep(h.hold) // the work that the lock protects
		}
		if h.guard != nil {
			h.guard.leave()
		}
		t.Taken++
		if measured.Load() {
			t.Served[0]++
			t.Waits.add(waited)
			if idle > 0 {
				t.Idle.add(idle)
			}
		}
		if err := lock.Unlock(); err != nil {
			return fmt.Errorf("unlock: %w", err)
		}
	}
	return nil
}

// merge joins the tallies of goroutines or processes.
func merge(parts []tally) tally {
	total := tally{Waits: newHistogram(), Idle: newHistogram()}
	for _, p := range parts {
		total.Taken += p.Taken
		total.Served = append(total.Served, p.Served...)
		total.Waits.merge(p.Waits)
		total.Idle.merge(p.Idle)
		total.Effort = total.Effort.add(p.Effort)
		total.Stranded += p.Stranded
		total.Lasted = max(total.Lasted, p.Lasted)
	}
	return total
}

func (t tally) ops() int64 {
	n := int64(0)
	for _, s := range t.Served {
		n += s
	}
	return n
}

// sleepUntil lets the measured time pass.
func sleepUntil(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("not measured to the end"), context.Cause(ctx))
	}
}
