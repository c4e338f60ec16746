// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// pause follows a call that failed, so that a server in trouble gets no storm of calls.
const pause = 100 * time.Millisecond

// work lets each worker take turns, one at least, until the part's time is over or ctx ends, and blocks until
// the last turns have ended. Those are not cut off, so that nothing is left behind, unless no turn ended for
// the grace; when ctx ends, they get the grace in all.
func (s Settings) work(ctx context.Context, part Part, workers int, turn func(ctx context.Context, worker int) error) Took {
	begun := time.Now()
	until, over := context.WithTimeout(ctx, s.share(part))
	defer over()
	calls, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	var failed failures
	var turns atomic.Int64
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for first := true; first || until.Err() == nil; first = false {
				err := turn(calls, worker)
				turns.Add(1)
				if err != nil {
					failed.add(err)
					select {
					case <-time.After(pause):
					case <-until.Done():
					}
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	s.finish(ctx, until, done, &turns, cutOff)
	return Took{Workers: workers, Seconds: round(time.Since(begun).Seconds()), Errors: failed.all()}
}

// finish blocks until done.
func (s Settings) finish(ctx, until context.Context, done <-chan struct{}, turns *atomic.Int64, cutOff func()) {
	<-until.Done()
	before := turns.Load()
	timer := time.NewTicker(s.Grace)
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
