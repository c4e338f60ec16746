package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// pause follows a call that failed, so that a server in trouble gets no storm of calls.
const pause = 100 * time.Millisecond

// crew is a number of workers that call the server for a time.
type crew struct {
	workers int
	last    time.Duration // how long
	grace   time.Duration // as in Settings
}

// work lets each worker take turns, one at least, until the time is over or ctx ends, and blocks until the
// last turns have ended. Those are not cut off, so that nothing is left behind, unless no turn ended for
// the grace; when ctx ends, they get the grace in all.
func (c crew) work(ctx context.Context, turn func(ctx context.Context, worker int) error) Took {
	begun := time.Now()
	until, over := context.WithTimeout(ctx, c.last)
	defer over()
	calls, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	var failed failures
	var turns atomic.Int64
	var wg sync.WaitGroup
	for worker := range c.workers {
		wg.Go(func() {
			for first := true; first || until.Err() == nil; first = false {
				err := turn(calls, worker)
				turns.Add(1)
				if err != nil {
					failed.add(err)
					rest(until)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	c.finish(ctx, until, done, &turns, cutOff)
	return Took{Workers: c.workers, Seconds: round(time.Since(begun).Seconds()), Errors: failed.all()}
}

// finish blocks until done.
func (c crew) finish(ctx, until context.Context, done <-chan struct{}, turns *atomic.Int64, cutOff func()) {
	<-until.Done()
	before := turns.Load()
	timer := time.NewTicker(c.grace)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
			now := turns.Load()
			if now == before || ctx.Err() != nil {
				cutOff()
			}
			before = now
		}
	}
}

func rest(ctx context.Context) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
