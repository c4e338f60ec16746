package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	heldLease   = 30 * time.Second
	heldMost    = 100_000
	heldTakers  = 64
	heldExplain = "One client takes so many locks under a lease of %v and holds them for %v. Heap and stack are what the process has more of after " +
		"a collection, for each lock, and goroutines how many more there are. Missed are locks whose context ended meanwhile, or whose key is gone. " +
		"redsync and bsm/redislock renew nothing by themselves and have no part in it. etcd holds all locks under one session. " +
		"Rivals have one round, since each takes minutes."
)

func held(quick bool) workload {
	sizes, lasts := []int{10_000, heldMost}, time.Minute
	if quick {
		sizes, lasts = []int{1000}, time.Second
	}
	h := workload{
		Name: "held", Title: "Many locks held", Note: fmt.Sprintf(heldExplain, heldLease, lasts),
		Columns: []string{mHeap, mStack, mRoutines, mCPUShare, mServShare, mMissed},
	}
	for _, n := range sizes {
		h.Cells = append(h.Cells, cell{
			Case: caseHeld(n), Rounds: 1,
			Takes: func(r rival) bool { return r.Renews },
			Run: func(ctx context.Context, w *world, r rival) (values, error) {
				return w.held(ctx, r, n, lasts)
			},
		})
	}
	return h
}

func caseHeld(n int) string { return thousands(fmt.Sprint(n)) + " locks" }

// memory is what the process has in use after a collection.
func memory() runtime.MemStats {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m
}

func (w *world) held(ctx context.Context, r rival, n int, lasts time.Duration) (values, error) {
	s, err := w.whereFor(ctx, r)
	if err != nil {
		return nil, err
	}
	l, err := r.Open(ctx, s.place, use{Lease: heldLease})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	list, holds := names("held", n), make([]hold, n)
	if err := calm(ctx); err != nil {
		return nil, err
	}
	routines, before := runtime.NumGoroutine(), memory()
	if err := takeAll(ctx, l, list, holds); err != nil {
		return nil, err
	}
	after := memory()
	v := values{
		mHeap:     float64(int64(after.HeapAlloc)-int64(before.HeapAlloc)) / float64(n),
		mStack:    float64(int64(after.StackInuse)-int64(before.StackInuse)) / float64(n),
		mRoutines: float64(runtime.NumGoroutine() - routines),
	}
	server, err := w.account(s)
	if err != nil {
		return nil, err
	}
	spent, from := effortNow(), time.Now()
	if err := sleepUntil(ctx, from.Add(lasts)); err != nil {
		return nil, err
	}
	took := time.Since(from).Seconds()
	v[mCPUShare] = 100 * effortNow().sub(spent).CPU.Seconds() / took
	later, err := w.account(s)
	if err != nil {
		return nil, err
	}
	v[mServShare] = 100 * later.sub(server).CPU.Seconds() / took
	missed, err := missing(ctx, s, r, list, holds)
	v[mMissed] = float64(missed)
	return v, err
}

// calm blocks until what the rival before left behind has ended.
func calm(ctx context.Context) error {
	for last := runtime.NumGoroutine(); ; {
		if err := sleepUntil(ctx, time.Now().Add(time.Second)); err != nil {
			return err
		}
		now := runtime.NumGoroutine()
		if now >= last {
			return nil
		}
		last = now
	}
}

// takeAll takes a lock of each name. With some libraries the locks end when ctx does.
func takeAll(ctx context.Context, l locker, list []string, holds []hold) error {
	take := l.Lock
	if shared, ok := l.(interface {
		LockShared(context.Context, string) (hold, error)
	}); ok {
		take = shared.LockShared
	}
	var fail failure
	var wg sync.WaitGroup
	for g := range heldTakers {
		wg.Go(func() {
			for i := g; i < len(list) && !fail.set.Load(); i += heldTakers {
				h, err := take(ctx, list[i])
				if err != nil {
					fail.report(err)
					return
				}
				holds[i] = h
			}
		})
	}
	wg.Wait()
	return fail.err
}

// missing counts the locks that are lost.
func missing(ctx context.Context, s *site, r rival, list []string, holds []hold) (int, error) {
	lost := make([]bool, len(list))
	for i, h := range holds {
		lost[i] = h.Context.Err() != nil
	}
	if r.Key != nil {
		c, err := rueidis.NewClient(s.place.option())
		if err != nil {
			return 0, err
		}
		defer c.Close()
		const batch = 1000
		for from := 0; from < len(list); from += batch {
			var commands rueidis.Commands
			for _, name := range list[from:min(from+batch, len(list))] {
				commands = append(commands, c.B().Exists().Key(r.Key(name)).Build())
			}
			for i, reply := range c.DoMulti(ctx, commands...) {
				there, err := reply.AsInt64()
				if err != nil {
					return 0, err
				}
				lost[from+i] = lost[from+i] || there == 0
			}
		}
	}
	n := 0
	for _, gone := range lost {
		if gone {
			n++
		}
	}
	return n, nil
}
