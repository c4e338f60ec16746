package main

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// held measures what locks cost that a client holds, and if the cell says so what their waiters cost, each a
// goroutine of a second client.
func (c cell) held(ctx context.Context, s *site, r rival, opened []locker, quick bool) (values, error) {
	lasts, names := 2*lease, c.names
	if quick {
		lasts, names = time.Second, c.names/10
	}
	ctx, cancel := context.WithCancel(ctx)
	var taking, waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	if err := sleep(ctx, lasts/10); err != nil { // until what the run before left behind has ended
		return nil, err
	}
	before, holds := memory(), make([]hold, names)
	var next atomic.Int64
	var failed [64]error
	for g := range failed {
		taking.Go(func() {
			for i := next.Add(1) - 1; i < int64(names) && failed[g] == nil; i = next.Add(1) - 1 {
				holds[i], failed[g] = opened[0].Lock(ctx, strconv.FormatInt(i, 10))
			}
		})
	}
	taking.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return nil, err
	}
	if c.waiters {
		for i := range names {
			waiting.Go(func() { _, _ = opened[1].Lock(ctx, strconv.Itoa(i)) }) // until the end
		}
	}
	if err := sleep(ctx, lasts/4); err != nil { // until all waiters are in their lines
		return nil, err
	}
	after, n := memory(), float64(names)
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
	for _, h := range holds {
		if h.Context.Err() != nil {
			return nil, errors.New("a lock was lost")
		}
	}
	spent := to.sub(from)
	return values{
		mHeap:            (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / n,
		mStack:           (float64(after.StackInuse) - float64(before.StackInuse)) / n,
		mClientShare:     100 * spent.client.Seconds() / spent.at.Seconds(),
		mServerShare:     100 * spent.server.Seconds() / spent.at.Seconds(),
		mCommandsASecond: float64(spent.by(r).calls) / spent.at.Seconds(),
	}, nil
}

// memory is what the process has in use after a collection.
func memory() (m runtime.MemStats) {
	debug.FreeOSMemory()
	runtime.ReadMemStats(&m)
	return m
}
