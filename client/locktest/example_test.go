// SPDX-License-Identifier: Apache-2.0

package locktest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// A lock is taken away from its holder while Do runs.
func ExampleServer_Take() {
	run(func(t *testing.T) {
		s := locktest.New(t)
		c := s.Client(client.Config{Lease: 300 * time.Millisecond})

		err := c.Do(t.Context(), "order:42", func(ctx context.Context) error {
			s.Take("order:42", time.Minute) // somebody else has it now
			<-ctx.Done()                    // the work is told to stop
			return context.Cause(ctx)
		})

		if !errors.Is(err, client.ErrLost) {
			t.Errorf("Do returned %v", err)
		}
	})
	// Output: the test passes
}

// The network is cut, and the work ends before somebody else can have the lock.
func ExampleServer_Cut() {
	run(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := locktest.New(t)
			here, there := s.Client(client.Config{}), s.Client(client.Config{})

			lock, err := here.Acquire(t.Context(), "order:42")
			if err != nil {
				t.Fatal(err)
			}
			s.Cut(here)
			next, err := there.Acquire(t.Context(), "order:42") // 30 s later
			if err != nil {
				t.Fatal(err)
			}

			if lock.Context().Err() == nil {
				t.Error("two of them work on the order")
			}
			if cause := context.Cause(lock.Context()); !errors.Is(cause, client.ErrExpired) {
				t.Errorf("the cause is %v", cause)
			}
			if next.Fence() <= lock.Fence() {
				t.Error("the token has not grown")
			}
		})
	})
	// Output: the test passes
}

// An hour passes in a moment, and the lock is renewed all the time.
func Example_virtualTime() {
	run(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := locktest.New(t) // within the bubble
			c := s.Client(client.Config{})

			lock, err := c.Acquire(t.Context(), "leader")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)

			s.HeldBy(lock)
			if lock.Remaining() < 15*time.Second {
				t.Errorf("%v left of the lease", lock.Remaining())
			}
		})
	})
	// Output: the test passes
}

// Two goroutines in line: the test waits until both are there.
func ExampleServer_Await() {
	run(func(t *testing.T) {
		s := locktest.New(t)
		giveBack := s.Take("stock", time.Minute)
		var work sync.WaitGroup
		for range 2 {
			c := s.Client(client.Config{})
			work.Go(func() {
				if err := c.Do(t.Context(), "stock", func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		s.Await("stock", func(i client.Info) bool { return i.Waiters == 2 })
		giveBack()
		work.Wait()
		s.Free("stock")
	})
	// Output: the test passes
}
