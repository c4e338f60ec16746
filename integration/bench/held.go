package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// takers is how many goroutines take the locks that are held then.
const takers = 64

// held holds many locks for a while, with a waiter for each if the cell says so.
func (c cell) held(ctx context.Context, s *site, r rival, p place) (values, error) {
	opened, err := openMany(r, p, 2)
	if err != nil {
		return nil, err
	}
	defer closeAll(opened)
	// With some libraries the locks end when the context does, and some need a deadline.
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	list, holds := names(c.names), make([]hold, c.names)
	if err := calm(ctx); err != nil {
		return nil, err
	}
	routines, before := runtime.NumGoroutine(), memory()
	if err := eachOf(takers, c.names, func(i int) (err error) {
		holds[i], err = opened[0].Lock(ctx, list[i])
		return err
	}); err != nil {
		return nil, err
	}
	var passed []time.Duration
	var handOn func() error
	if c.waiters {
		passed, handOn = waitFor(ctx, opened[1], list, holds)
	}
	lasts := 2 * lease
	if c.quick {
		lasts = time.Second
	}
	if err := sleep(ctx, lasts/4); err != nil { // until all waiters are in their lines
		return nil, err
	}
	after, n := memory(), float64(c.names)
	v := values{
		mHeap:     (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / n,
		mStack:    (float64(after.StackInuse) - float64(before.StackInuse)) / n,
		mRoutines: float64(runtime.NumGoroutine() - routines),
	}
	from, err := s.account(ctx)
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, lasts); err != nil {
		return nil, err
	}
	to, err := s.account(ctx)
	if err != nil {
		return nil, err
	}
	spent := to.sub(from)
	v[mClientShare] = 100 * spent.client.Seconds() / spent.at.Seconds()
	v[mServerShare] = 100 * spent.server.Seconds() / spent.at.Seconds()
	sent, _ := spent.split(r)
	v[mCommandsASecond] = float64(sent) / spent.at.Seconds()
	if v[mMissed], err = missing(ctx, s, r, list, holds); err != nil || !c.waiters {
		return v, err
	}
	if err := handOn(); err != nil {
		return nil, err
	}
	slices.Sort(passed)
	v[mRate] = n / passed[len(passed)-1].Seconds()
	v[mP99] = float64(passed[len(passed)*99/100].Microseconds())
	return v, nil
}

// waitFor waits for all locks, each in a goroutine. What it returns releases the holds and blocks
// until all waiters had their lock: passed is then how long each took after the first release.
func waitFor(ctx context.Context, l locker, list []string, holds []hold) (passed []time.Duration, handOn func() error) {
	passed = make([]time.Duration, len(list))
	var released atomic.Pointer[time.Time]
	done := make(chan error, 1)
	go func() {
		done <- eachOf(len(list), len(list), func(i int) error {
			h, err := l.Lock(ctx, list[i])
			if err != nil {
				return err
			}
			if at := released.Load(); at != nil { // else it was lost, which counts as missed
				passed[i] = time.Since(*at)
			}
			return h.Unlock()
		})
	}()
	return passed, func() error {
		now := time.Now()
		released.Store(&now)
		if err := eachOf(takers, len(list), func(i int) error { return holds[i].Unlock() }); err != nil {
			return err
		}
		return <-done
	}
}

// eachOf calls f for 0 to n-1 in some goroutines and returns the first error.
func eachOf(goroutines, n int, f func(int) error) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	var failed atomic.Pointer[error]
	for range goroutines {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && failed.Load() == nil; i = next.Add(1) - 1 {
				if err := f(int(i)); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// calm blocks until what the rival before left behind has ended.
func calm(ctx context.Context) error {
	for last := runtime.NumGoroutine(); ; {
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
		now := runtime.NumGoroutine()
		if now >= last {
			return nil
		}
		last = now
	}
}

// memory is what the process has in use after a collection.
func memory() (m runtime.MemStats) {
	debug.FreeOSMemory()
	runtime.ReadMemStats(&m)
	return m
}

// missing counts the locks that are lost.
func missing(ctx context.Context, s *site, r rival, list []string, holds []hold) (n float64, err error) {
	c := s.primaries[0]
	var commands rueidis.Commands
	for _, name := range list {
		commands = append(commands, c.B().Exists().Key(r.Key(name)).Build())
	}
	for i, reply := range c.DoMulti(ctx, commands...) {
		there, err := reply.AsInt64()
		if err != nil {
			return 0, err
		}
		if there == 0 || holds[i].Context.Err() != nil {
			n++
		}
	}
	return n, nil
}
