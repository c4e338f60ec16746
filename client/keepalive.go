package client

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// timed is what keepalive has in its heap: a lease that is kept alive, or given back.
type timed interface {
	next() time.Time                  // when it is due; the zero time: never again
	step(now time.Time) (send errand) // does what is due, and returns what is left to send
	abandon()                         // the client closes
	unwanted() bool                   // it is only to be given back
}

// entry is a timed in the heap. keepalive.mu guards it.
type entry struct {
	timed timed
	index int // in the heap; -1: not there
	due   time.Time
}

// keepalive is the one scheduler of a client. It calls each lease's step when that is due, and
// sends what is left to do, many locks in one pipeline. There is no goroutine for a lock, and none
// at all before the first one.
//
// A lease is in the heap from add until its machine is done: there is no time between.
type keepalive struct {
	flights *flights
	mu      sync.Mutex // before the mutexes of what is in the heap
	queue   dueHeap
	armed   time.Time // when the scheduler wakes by itself: only what is due earlier has to wake it
	wake    chan struct{}
	start   sync.Once
	done    sync.WaitGroup
	ctx     context.Context
	cancel  context.CancelFunc
	closing bool
	paid    chan struct{} // close waits for it: nothing is left to be given back
}

func newKeepalive(f *flights) *keepalive {
	k := &keepalive{flights: f, wake: make(chan struct{}, 1)}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k
}

// add puts h under the scheduler's care. It fails with ErrClosed after close, but for what is to be
// given back.
func (k *keepalive) add(e *entry) error {
	k.mu.Lock()
	if k.ctx.Err() != nil || k.closing && !e.timed.unwanted() {
		k.mu.Unlock()
		return ErrClosed
	}
	e.due = e.timed.next()
	heap.Push(&k.queue, e)
	early := e.due.Before(k.armed)
	k.start.Do(func() {
		k.done.Add(1)
		go k.run()
	})
	k.mu.Unlock()
	if early {
		k.poke()
	}
	return nil
}

// update looks at e again, after what is in it has changed.
func (k *keepalive) update(e *entry) {
	k.mu.Lock()
	early := false
	if e.index >= 0 {
		if e.due = e.timed.next(); e.due.IsZero() {
			heap.Remove(&k.queue, e.index)
			k.settled()
		} else {
			heap.Fix(&k.queue, e.index)
			early = e.due.Before(k.armed)
		}
	}
	k.mu.Unlock()
	if early {
		k.poke()
	}
}

// pick returns those for which wanted returns true.
func (k *keepalive) pick(wanted func(timed) bool) (picked []timed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.queue {
		if wanted(e.timed) {
			picked = append(picked, e.timed)
		}
	}
	return picked
}

func (k *keepalive) poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// act does what is due for e at now.
func (k *keepalive) act(e *entry, now time.Time) {
	if send := e.timed.step(now); send != nil {
		k.flights.add(send)
	}
	k.update(e)
}

// actNow is act for others than the scheduler.
func (k *keepalive) actNow(e *entry, now time.Time) {
	k.act(e, now)
	k.poke()
}

func (k *keepalive) run() {
	defer k.done.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for seen := time.Now(); ; {
		seen = k.awake(seen)
		e, pause := k.head(time.Now())
		if e != nil {
			k.act(e, time.Now())
			continue
		}
		k.flights.launch()
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-k.wake:
		case <-k.ctx.Done():
			return
		}
	}
}

// awake acts on all leases after the wall clock has run ahead of the monotonic clock, which stands
// still while the machine is suspended. It returns the time.
func (k *keepalive) awake(seen time.Time) time.Time {
	now := time.Now()
	if now.Round(0).Sub(seen.Round(0))-now.Sub(seen) < suspended {
		return now
	}
	k.mu.Lock()
	all := append([]*entry(nil), k.queue...)
	k.mu.Unlock()
	for _, e := range all {
		k.act(e, now)
	}
	return now
}

const (
	glance    = 5 * time.Second // the scheduler wakes as often, while there are leases
	suspended = time.Second / 2
)

// head returns the lease that is due, or nil and how long to wait for the next one.
func (k *keepalive) head(now time.Time) (*entry, time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pause := time.Hour
	if len(k.queue) > 0 {
		pause = k.queue[0].due.Sub(now)
		if pause <= 0 {
			return k.queue[0], 0
		}
		pause = min(pause, glance)
	}
	k.armed = now.Add(pause)
	return nil, pause
}

// close ends every lock's context with ErrClosed, without giving it back. What nobody got is given
// back before close returns, or when patience is over lapses with its lease. It waits for the
// scheduler and its pipelines.
func (k *keepalive) close(patience context.Context) {
	k.mu.Lock()
	k.closing = true
	all := append([]*entry(nil), k.queue...)
	paid := make(chan struct{})
	k.paid = paid
	k.settled()
	k.mu.Unlock()
	for _, e := range all {
		e.timed.abandon()
		k.update(e)
	}
	k.poke()
	select {
	case <-paid:
	case <-patience.Done():
	}
	k.mu.Lock()
	k.cancel()
	all = k.queue
	k.queue = nil
	for _, e := range all {
		e.index = -1
	}
	k.mu.Unlock()
	k.flights.close()
	k.done.Wait()
}

// settled tells close when nothing is left. k.mu is held.
func (k *keepalive) settled() {
	if len(k.queue) == 0 && k.paid != nil {
		close(k.paid)
		k.paid = nil
	}
}

// dueHeap orders by due.
type dueHeap []*entry

func (q dueHeap) Len() int           { return len(q) }
func (q dueHeap) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q dueHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *dueHeap) Push(x any) {
	e := x.(*entry)
	e.index = len(*q)
	*q = append(*q, e)
}
func (q *dueHeap) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	e.index = -1
	return e
}
