// SPDX-License-Identifier: Apache-2.0

package holdfastgocron_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/client"
	holdfastgocron "github.com/holdfast-go/holdfast/client/adapter/gocron"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// What gocron's own tests ask of an elector, with a client for each scheduler: one of three runs the
// jobs. When it resigns, or dies, another one does.
func TestTheLeaderRunsTheJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		var done [3]runs
		var clients [3]*client.Client
		var electors [3]*holdfastgocron.Elector
		for i := range done {
			clients[i] = s.Client(client.Config{})
			electors[i] = elector(t, clients[i])
			pass(time.Second) // they are in line in this order
			add(t, scheduler(t, gocron.WithDistributedElector(electors[i])), time.Second, gocron.NewTask(done[i].add))
		}
		minute := func(want ...int) {
			t.Helper()
			for i := range done {
				done[i].take()
			}
			pass(time.Minute)
			for i := range done {
				if got := len(done[i].take()); got < want[i]-1 || got > want[i]+1 {
					t.Errorf("process %d ran it %d times, not %d", i, got, want[i])
				}
			}
		}
		minute(60, 0, 0)
		electors[0].Close()
		minute(0, 60, 0)
		s.Cut(clients[1])
		time.Sleep(31 * time.Second) // its lease
		minute(0, 0, 60)
	})
}

// The old leader stops before the new one starts.
func TestTermsDoNotOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		here := s.Client(client.Config{})
		old := elector(t, here)
		term, err := old.Await(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		next := elector(t, s.Client(client.Config{}))
		pass(time.Second)
		if leads(next) {
			t.Fatal("two lead")
		}
		s.Cut(here)
		if !leads(old) {
			t.Error("an outage that is shorter than the lease ends the term")
		}
		later, err := next.Await(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if leads(old) || term.Err() == nil {
			t.Error("two lead")
		}
		err = old.IsLeader(t.Context())
		if lost := errors.Is(err, client.ErrLost) || errors.Is(err, client.ErrUnreachable); !lost ||
			!errors.Is(err, holdfastgocron.ErrNotLeader) {
			t.Errorf("IsLeader of the old leader returned %v", err)
		}
		if client.Fence(later) <= client.Fence(term) {
			t.Error("the token has not grown")
		}
		s.Restore(here)
		next.Close()
		if _, err := old.Await(t.Context()); err != nil { // it campaigned again
			t.Error(err)
		}
	})
}

// IsLeader sends nothing: it answers while the server is frozen, without allocating.
func TestIsLeaderAsksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		e := elector(t, s.Client(client.Config{}))
		if _, err := e.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Pause()
		began := time.Now()
		if n := testing.AllocsPerRun(1000, func() {
			if err := e.IsLeader(context.Background()); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%v allocations", n)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
		s.Resume()
	})
}

// An elector whose Redis is not there says so, and leads when it is.
func TestAnElectorWaitsForRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		c := s.Client(client.Config{})
		s.Stop()
		e := elector(t, c)
		pass(time.Minute)
		if err := e.IsLeader(t.Context()); !errors.Is(err, client.ErrUnreachable) {
			t.Errorf("IsLeader returned %v", err)
		}
		s.Start()
		if _, err := e.Await(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAJobHearsThatTheTermIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		e := elector(t, s.Client(client.Config{}))
		if _, err := e.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		var cause error
		add(t, scheduler(t, gocron.WithDistributedElector(e)), time.Hour, e.Task(func(ctx context.Context) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		}), gocron.WithStartAt(gocron.WithStartImmediately()))
		pass(time.Minute)
		s.Break("reports", "deployment")
		pass(time.Second)
		if !errors.Is(cause, client.ErrBroken) {
			t.Errorf("the cause is %v", cause)
		}
	})
}

// A job that goes on after its context has ended keeps its lock: in a shutdown of the client, and when its
// scheduler has ended it.
func TestAJobThatGoesOnKeepsItsLock(t *testing.T) {
	for name, test := range map[string]struct{ elects, removed bool }{
		"a Locker's in a shutdown": {}, "an Elector's in a shutdown": {elects: true}, "a Locker's that was removed": {removed: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := locktest.New(t)
				c, key, down := s.Client(client.Config{}), "gocron:report", make(chan error, 1)
				ended := make(chan bool, 1)
				job := func(ctx context.Context) error {
					<-ctx.Done()
					time.Sleep(10 * time.Minute)
					ended <- s.Inspect(key).Fence == client.Fence(ctx) && test.removed != errors.Is(context.Cause(ctx), client.ErrShutdown)
					return nil
				}
				var sched gocron.Scheduler
				var task gocron.Task
				if test.elects {
					e := elector(t, c)
					if _, err := e.Await(t.Context()); err != nil {
						t.Fatal(err)
					}
					elector(t, s.Client(client.Config{})) // stands in line
					key, sched, task = "reports", scheduler(t, gocron.WithDistributedElector(e)), e.Task(job)
				} else {
					l := locker(t, c, time.Second)
					sched, task = scheduler(t, gocron.WithDistributedLocker(l)), l.Task(job)
				}
				add(t, sched, time.Hour, task, gocron.WithStartAt(gocron.WithStartImmediately()))
				pass(time.Second)
				if test.removed {
					if err := sched.RemoveJob(sched.Jobs()[0].ID()); err != nil {
						t.Fatal(err)
					}
					pass(11 * time.Minute)
				}
				go func() { down <- c.Shutdown(context.Background()) }()
				if ok := <-ended; !ok {
					t.Error("it has gone on without its lock, or was ended for another reason")
				}
				if err := <-down; err != nil {
					t.Error(err)
				}
				pass(time.Second)
				if now := s.Inspect(key); now.Held != test.elects || now.Waiters > 0 {
					t.Errorf("after it: %+v", now)
				}
			})
		})
	}
}

// A limit ends a term, and the lock is kept while jobs of Task stop, for the grace at the most.
func TestTheNextTermWaitsForTheJobs(t *testing.T) {
	const grace = 10 * time.Second // also the default
	for name, limit := range map[string]client.Option{
		"MaxHold": client.WithMaxHold(time.Minute, grace), "MaxRenewals": client.WithMaxRenewals(5),
	} {
		for stops, want := range map[time.Duration]time.Duration{0: 0, grace / 2: grace / 2, 2 * grace: grace} {
			t.Run(fmt.Sprint(name, " ", stops), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := locktest.New(t)
					e := elector(t, s.Client(client.Config{}), limit)
					term, err := e.Await(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					next := elector(t, s.Client(client.Config{}))
					add(t, scheduler(t, gocron.WithDistributedElector(e)), time.Hour, e.Task(func(ctx context.Context) error {
						<-ctx.Done()
						time.Sleep(stops)
						return nil
					}), gocron.WithStartAt(gocron.WithStartImmediately()))
					<-term.Done()
					over := time.Now()
					if _, err := next.Await(t.Context()); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(over); took < want || took > want+time.Second {
						t.Errorf("the next one leads after %v, not %v", took, want)
					}
					pass(2 * grace)
					if now := s.Inspect("reports"); now.Waiters != 1 {
						t.Errorf("the old one does not campaign: %+v", now)
					}
				})
			})
		}
	}
}

// A job that never returns costs its process the term, and no later one.
func TestAJobThatHangsHoldsUpNoCampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		c := s.Client(client.Config{})
		e := elector(t, c, client.WithMaxHold(time.Minute, 10*time.Second))
		stuck := make(chan struct{})
		add(t, scheduler(t, gocron.WithDistributedElector(e)), time.Hour, e.Task(func(context.Context) error {
			<-stuck
			return nil
		}), gocron.WithStartAt(gocron.WithStartDateTime(time.Now().Add(time.Second))))
		for range 5 {
			term, err := e.Await(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			<-term.Done()
			if _, err := e.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > time.Minute+12*time.Second {
				t.Errorf("the next term began after %v", took)
			}
		}
		c.Close()
		if _, err := e.Await(t.Context()); !errors.Is(err, client.ErrClosed) {
			t.Errorf("Await returned %v", err)
		}
		close(stuck)
	})
}

func TestAClosedElector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		c := s.Client(client.Config{})
		e := elector(t, c)
		if _, err := e.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.Close()
		e.Close()
		s.Free("reports")
		for name, err := range map[string]error{
			"IsLeader": e.IsLeader(t.Context()), "Await": second(e.Await(t.Context())),
		} {
			if !errors.Is(err, holdfastgocron.ErrNotLeader) || !errors.Is(err, client.ErrClosed) {
				t.Errorf("%s returned %v", name, err)
			}
		}
		// so it is when the client was closed before it
		e = elector(t, c)
		c.Close()
		if _, err := e.Await(t.Context()); !errors.Is(err, client.ErrClosed) {
			t.Errorf("Await returned %v", err)
		}
		// a term ends also where the lock's context goes on
		e = elector(t, s.Client(client.Config{}), client.WithLockContext(context.Background()))
		term, err := e.Await(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e.Close()
		if s.Free("reports"); term.Err() == nil {
			t.Error("the term goes on")
		}
		// and when Redis does not answer
		e = elector(t, s.Client(client.Config{}))
		if _, err := e.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Pause()
		began := time.Now()
		e.Close()
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("Close took %v", took)
		}
		s.Resume()
	})
}

func second[T any](_ T, err error) error { return err }
