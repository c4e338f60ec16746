// SPDX-License-Identifier: Apache-2.0

package holdfastgocron_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/client"
	holdfastgocron "github.com/holdfast-go/holdfast/client/adapter/gocron"
)

// runs are the times at which a fleet did a job.
type runs struct {
	mu sync.Mutex
	at []time.Time
}

func (r *runs) add() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = append(r.at, time.Now())
}

func (r *runs) take() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.at
	r.at = nil
	return at
}

// pass lets virtual time pass, and what is due then happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// scheduler starts a scheduler for the time of the test.
func scheduler(t *testing.T, opts ...gocron.SchedulerOption) gocron.Scheduler {
	t.Helper()
	s, err := gocron.NewScheduler(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	s.Start()
	return s
}

func add(t *testing.T, s gocron.Scheduler, every time.Duration, task gocron.Task, opts ...gocron.JobOption) {
	t.Helper()
	if _, err := s.NewJob(gocron.DurationJob(every), task, append(opts, gocron.WithName("report"))...); err != nil {
		t.Fatal(err)
	}
}

func locker(t *testing.T, c *client.Client, minHold time.Duration, opts ...client.Option) *holdfastgocron.Locker {
	t.Helper()
	l, err := holdfastgocron.NewLocker(c, minHold, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func elector(t *testing.T, c *client.Client, opts ...client.Option) *holdfastgocron.Elector {
	e := holdfastgocron.NewElector(c, "reports", opts...)
	t.Cleanup(e.Close)
	return e
}

func leads(e *holdfastgocron.Elector) bool { return e.IsLeader(context.Background()) == nil }
