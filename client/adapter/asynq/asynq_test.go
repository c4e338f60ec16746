// SPDX-License-Identifier: Apache-2.0

package holdfastasynq_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/client"
	holdfastasynq "github.com/holdfast-go/holdfast/client/adapter/asynq"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// fleet sees that no two schedulers run at once.
type fleet struct {
	t *testing.T

	mu      sync.Mutex
	running string
	terms   []string // who led, in order
}

// scheduler is one that takes some time to shut down.
type scheduler struct {
	fleet *fleet
	of    string
	slow  time.Duration
}

func (s scheduler) Start() error {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	if s.fleet.running != "" {
		s.fleet.t.Errorf("%s starts beside %s", s.of, s.fleet.running)
	}
	s.fleet.running = s.of
	s.fleet.terms = append(s.fleet.terms, s.of)
	return nil
}

func (s scheduler) Shutdown() {
	time.Sleep(s.slow)
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	s.fleet.running = ""
}

// leads fails the test unless that process runs a scheduler; "" is nobody.
func (f *fleet) leads(of string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running != of {
		f.t.Errorf("%q leads, not %q (%q)", f.running, of, f.terms)
	}
}

// run starts a process. What is returned stops it, and returns what Run returned.
func (f *fleet) run(c *client.Client, of string, slow time.Duration) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- holdfastasynq.Run(ctx, c, "scheduler", func() (holdfastasynq.Scheduler, error) {
			return scheduler{f, of, slow}, nil
		})
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	f.t.Cleanup(func() { _ = stop() })
	pass(time.Second) // it is in line
	return stop
}

// pass lets virtual time pass, and what is due then happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestOneLeadsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		f := &fleet{t: t}
		a, b, c := s.Client(client.Config{}), s.Client(client.Config{}), s.Client(client.Config{})
		stop := f.run(a, "a", 0)
		f.run(b, "b", 0)
		f.run(c, "c", 0)
		pass(time.Hour)
		f.leads("a")

		if err := stop(); err != nil { // in good order
			t.Errorf("Run returned %v", err)
		}
		pass(100 * time.Millisecond)
		f.leads("b")

		pass(time.Minute)
		s.Cut(b) // an outage of one process
		pass(15 * time.Second)
		f.leads("b")
		pass(16 * time.Second)
		f.leads("c")
		s.Restore(b)
		pass(time.Minute)
		f.leads("c")

		s.Cut() // an outage of all
		pass(time.Minute)
		f.leads("")
		s.Restore()
		pass(time.Minute)
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.running == "" {
			t.Error("nobody leads after the outage")
		}
	})
}

// A leader whose lock is broken shuts its scheduler down, and leads again with a new one.
func TestABrokenLeaderCampaignsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		f := &fleet{t: t}
		f.run(s.Client(client.Config{}), "a", 0)
		giveBack := s.Take("scheduler", time.Hour)
		pass(time.Minute)
		f.leads("")
		giveBack()
		pass(time.Second)
		f.leads("a")
		s.Break("scheduler", "deployment")
		pass(time.Second)
		f.leads("a")
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.terms) != 3 {
			t.Errorf("the terms were %q", f.terms)
		}
	})
}

// The lock is held until the scheduler is shut down, also for longer than a lease: at the end of Run's context, and
// in a Shutdown of the client.
func TestTheLockIsHeldUntilTheShutdownIsComplete(t *testing.T) {
	for _, down := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := locktest.New(t)
			f := &fleet{t: t}
			c := s.Client(client.Config{})
			stop := f.run(c, "a", 2*time.Minute)
			f.run(s.Client(client.Config{}), "b", 0)
			began := time.Now()
			if down {
				if err := c.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if err := stop(); down != errors.Is(err, client.ErrShutdown) || !down && err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took < 2*time.Minute || took > 3*time.Minute {
				t.Errorf("it took %v", took)
			}
			pass(time.Second)
			f.leads("b") // and Start has found nobody beside it
		})
	}
}

func TestRunGivesTheLockBackWhenItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		c := s.Client(client.Config{})
		broken := errors.New("no configuration")
		err := holdfastasynq.Run(t.Context(), c, "scheduler", func() (holdfastasynq.Scheduler, error) {
			return nil, broken
		})
		if !errors.Is(err, broken) {
			t.Errorf("Run returned %v", err)
		}
		s.Free("scheduler")
		err = holdfastasynq.Run(t.Context(), c, "scheduler", func() (holdfastasynq.Scheduler, error) {
			return failing{broken}, nil
		})
		if !errors.Is(err, broken) {
			t.Errorf("Run returned %v", err)
		}
		s.Free("scheduler")
		err = holdfastasynq.Run(t.Context(), c, "", nil)
		if !errors.Is(err, client.ErrInvalid) {
			t.Errorf("Run without a name returned %v", err)
		}
		c.Close()
		err = holdfastasynq.Run(t.Context(), c, "scheduler", nil)
		if !errors.Is(err, client.ErrClosed) {
			t.Errorf("Run of a closed client returned %v", err)
		}
	})
}

type failing struct{ err error }

func (f failing) Start() error { return f.err }
func (f failing) Shutdown()    {}

// Run waits for a Redis that is not there.
func TestRunWaitsForRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		c := s.Client(client.Config{})
		s.Stop()
		f := &fleet{t: t}
		stop := f.run(c, "a", 0)
		pass(time.Hour)
		f.leads("")
		s.Start()
		pass(10 * time.Second)
		f.leads("a")
		s.Stop()
		began := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 1500*time.Millisecond {
			t.Errorf("it took %v to stop without Redis", took)
		}
	})
}
