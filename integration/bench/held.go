// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// held measures what locks cost that the first client holds, or if there are others what their waiters cost,
// one for each lock in each client.
func (c cell) held(ctx context.Context, s *site, r rival, opened []locker, quick bool) (values, error) {
	window, names := lease/3, c.names // every lock is renewed once in it
	if quick {
		window, names = 100*time.Millisecond, c.names/100
	}
	ctx, cancel := context.WithCancel(ctx)
	var taking, waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
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
	n := float64(names)
	if c.waiters > 0 {
		before, n = memory(), n*float64(c.waiters)
		for _, l := range opened[1:] {
			for i := range names {
				waiting.Go(func() { _, _ = l.Lock(ctx, strconv.Itoa(i)) }) // until the end
			}
		}
	}
	settle := window / 3 // until all waiters are in their lines
	if c.group == "all" {
		settle = 4 * window // and have waited for so long that they ask seldom
	}
	if err := sleep(ctx, settle); err != nil {
		return nil, err
	}
	after := memory()
	from, err := s.account(ctx)
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, window); err != nil {
		return nil, err
	}
	to, err := s.account(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range holds {
		if h.Context.Err() != nil {
			return nil, fmt.Errorf("a lock was lost: %w", context.Cause(h.Context))
		}
	}
	spent := to.sub(from)
	seconds := spent.at.Seconds()
	return values{
		mHeap:        (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / n,
		mStack:       (float64(after.StackInuse) - float64(before.StackInuse)) / n,
		mClientShare: 100 * spent.client.Seconds() / seconds,
		mServerShare: 100 * spent.server.Seconds() / seconds,
		mClientCPU:   float64(spent.client.Microseconds()) / seconds / n,
		mServerCPU:   float64(spent.server.Microseconds()) / seconds / n,
		mCommands:    float64(spent.by(r).calls) / seconds / n,
	}, nil
}

// opening measures how long clients take from Open to their first lock, and what they keep.
func (c cell) opening(ctx context.Context, open func() (locker, error)) (values, error) {
	if err := sleep(ctx, 400*time.Millisecond); err != nil { // closed clients keep their buffers for a while
		return nil, err
	}
	before := memory()
	var took []float64
	for i := range c.clients {
		began := time.Now()
		l, err := open()
		if err != nil {
			return nil, err
		}
		h, err := l.TryLock(ctx, strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		took = append(took, float64(time.Since(began).Microseconds()))
		if err := h.Unlock(); err != nil {
			return nil, err
		}
	}
	after := memory()
	first, _ := spreadOf(took)
	kept := float64(after.HeapAlloc+after.StackInuse) - float64(before.HeapAlloc+before.StackInuse)
	return values{mOpen: first.median, mIdle: kept / float64(c.clients)}, nil
}

// memory is what the process has in use after collections: what ended before may take a moment to let go.
func memory() (m runtime.MemStats) {
	for last := uint64(math.MaxUint64); ; time.Sleep(50 * time.Millisecond) {
		debug.FreeOSMemory()
		runtime.ReadMemStats(&m)
		if m.HeapAlloc > last-last/100 {
			return m
		}
		last = m.HeapAlloc
	}
}
