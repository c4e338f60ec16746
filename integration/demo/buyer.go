package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

const (
	tills   = 5                // buyers that one process serves at the same time
	payment = time.Millisecond // how long it takes to pay
	lastGo  = time.Minute      // nothing in a sale takes that long
)

// serve lets this process's buyers buy, some at a time, and tells of each.
func (w *worker) serve(ctx context.Context) error {
	buy := w.buy
	if !w.job.Locked {
		buy = w.buyWithoutLock
	}
	var (
		wg    sync.WaitGroup
		next  atomic.Int64
		once  sync.Once
		first error
	)
	for range tills {
		wg.Go(func() {
			for next.Add(1) <= int64(w.job.Buyers) {
				said, err := buy(ctx)
				if err != nil {
					once.Do(func() { first = err })
					return
				}
				w.say(said)
			}
		})
	}
	wg.Wait()
	return first
}

// buyWithoutLock is the mistake: between reading the stock and writing it,
// others do the same.
func (w *worker) buyWithoutLock(ctx context.Context) (event, error) {
	stock, err := w.shop.peek(ctx)
	if err != nil {
		return event{}, err
	}
	if stock == 0 {
		return event{Kind: soldOut}, nil
	}
	pay()
	return event{Kind: sold}, w.shop.grab(ctx, stock-1)
}

// buy is the same under a lock. It waits for its turn, and takes the lock's
// token along wherever it reads and writes.
func (w *worker) buy(ctx context.Context) (event, error) {
	lock, err := w.locks.Acquire(ctx, w.shop.name)
	switch {
	case errors.Is(err, client.ErrUnreachable): // on a machine that is very busy
		return event{Kind: refused, Text: err.Error()}, nil
	case err != nil:
		return event{}, err
	}
	said := event{Fence: lock.Fence(), At: time.Now()}
	said.Kind, err = w.buyHolding(lock)

	// When this process is late the lock is another's by now. This buyer goes home, as one whom nobody
	// answers does; a sale has more of them.
	if released := lock.Release(ctx); errors.Is(released, client.ErrLost) || errors.Is(err, errRefused) {
		said.Kind, said.Text = refused, fmt.Sprint(errors.Join(err, released))
		return said, nil
	}
	return said, err
}

func (w *worker) buyHolding(lock *client.Lock) (kind, error) {
	ctx := lock.Context() // ends when the lock is lost
	stock, err := w.shop.look(ctx, lock.Fence())
	if err != nil {
		return "", err
	}
	if stock == 0 {
		return soldOut, nil
	}
	pay()
	return sold, w.shop.sell(ctx, lock.Fence(), stock-1)
}

// linger takes the lock, reads the stock, says so, and goes on only when it is
// told to. By then it has been killed or paused, and if paused, it is too late:
// it does what a process does that does not know: it writes.
func (w *worker) linger(ctx context.Context) error {
	lock, err := w.locks.Acquire(ctx, w.shop.name)
	if err != nil {
		return err
	}
	fence := lock.Fence()
	stock, err := w.shop.look(lock.Context(), fence)
	if err != nil {
		return err
	}
	w.say(event{Kind: holding, Fence: fence, At: time.Now()})
	if err := w.told(write); err != nil {
		return err
	}
	// Not under the lock's context, which would stop it: a process can be paused after any check
	// that it makes.
	switch err := w.shop.sell(ctx, fence, stock-1); {
	case err == nil:
		w.say(event{Kind: sold, Fence: fence, At: time.Now()})
	case errors.Is(err, errRefused):
		<-lock.Context().Done()
		w.say(event{Kind: refused, Fence: fence, At: time.Now(), Text: context.Cause(lock.Context()).Error()})
	default:
		return err
	}
	return nil
}

// pay takes time, as paying does.
func pay() { time.Sleep(payment) }
