// SPDX-License-Identifier: Apache-2.0

package holdfastgocron_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/client"
	holdfastgocron "github.com/holdfast-go/holdfast/client/adapter/gocron"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// What gocron's own tests ask of a locker, with a client for each scheduler: of three schedulers that
// start a job at the same moment one runs it, and all do where the lock is switched off.
func TestOneOfThreeSchedulersRunsAJob(t *testing.T) {
	for name, test := range map[string]struct {
		ofJob bool
		opts  []gocron.JobOption
		want  int
	}{
		"locker of the scheduler": {false, nil, 1},
		"locker of the job":       {true, nil, 1},
		"locker switched off":     {false, []gocron.JobOption{gocron.WithDisabledDistributedJobLocker(true)}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := locktest.New(t)
				var done runs
				for range 3 {
					l := locker(t, s.Client(client.Config{}), 54*time.Minute)
					opts := append([]gocron.JobOption{gocron.WithStartAt(gocron.WithStartImmediately()),
						gocron.WithLimitedRuns(1)}, test.opts...)
					if test.ofJob {
						opts = append(opts, gocron.WithDistributedJobLocker(l))
						add(t, scheduler(t), time.Hour, gocron.NewTask(done.add), opts...)
					} else {
						add(t, scheduler(t, gocron.WithDistributedLocker(l)), time.Hour, gocron.NewTask(done.add), opts...)
					}
				}
				pass(time.Minute)
				if got := len(done.take()); got != test.want {
					t.Errorf("%d runs, not %d", got, test.want)
				}
			})
		})
	}
}

// gocron's issue 841: the processes of a fleet were started 20 s apart, and the job takes no time.
func TestShortJobsRunOncePerInterval(t *testing.T) {
	const interval, minHold = time.Minute, 54 * time.Second
	fleet := func(t *testing.T, opts ...client.Option) []time.Time {
		s := locktest.New(t)
		var done runs
		for range 3 {
			l := locker(t, s.Client(client.Config{}), minHold, opts...)
			add(t, scheduler(t, gocron.WithDistributedLocker(l)), interval, gocron.NewTask(done.add))
			pass(20 * time.Second)
		}
		pass(time.Minute)
		done.take()
		pass(20 * time.Minute)
		return done.take()
	}
	synctest.Test(t, func(t *testing.T) {
		at := fleet(t)
		if len(at) < 20 || len(at) > 21 {
			t.Errorf("%d runs in 20 minutes, not 20", len(at))
		}
		for i := range at[1:] {
			if gap := at[i+1].Sub(at[i]); gap < minHold {
				t.Errorf("two runs are %v apart", gap)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) { // so that it is minHold that does it
		if at := fleet(t, client.WithMinHold(0)); len(at) < 57 {
			t.Errorf("%d runs in 20 minutes without minHold", len(at))
		}
	})
}

// The scheduler that has had all runs dies, and another one has the next.
func TestAnotherSchedulerTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		var first, second runs
		a, b := s.Client(client.Config{}), s.Client(client.Config{})
		add(t, scheduler(t, gocron.WithDistributedLocker(locker(t, a, 9*time.Second))), 10*time.Second,
			gocron.NewTask(first.add))
		pass(5 * time.Second)
		add(t, scheduler(t, gocron.WithDistributedLocker(locker(t, b, 9*time.Second))), 10*time.Second,
			gocron.NewTask(second.add))
		pass(time.Minute)
		if x, y := len(first.take()), len(second.take()); x != 6 || y != 0 {
			t.Fatalf("%d and %d runs, not 6 and 0", x, y)
		}
		a.Close()
		pass(time.Minute)
		if x, y := len(first.take()), len(second.take()); x != 0 || y < 5 {
			t.Errorf("%d and %d runs, not 0 and 5 or 6", x, y)
		}
	})
}

func TestNoRunWhileRedisIsUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		var done runs
		var why error
		c := s.Client(client.Config{})
		heard := gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { why = err })
		add(t, scheduler(t, gocron.WithDistributedLocker(locker(t, c, 9*time.Second))), 10*time.Second,
			gocron.NewTask(done.add), gocron.WithEventListeners(heard))
		pass(65 * time.Second)
		if len(done.take()) != 6 {
			t.Fatal("it does not run")
		}
		s.Cut()
		pass(time.Minute)
		if got := len(done.take()); got != 0 {
			t.Errorf("%d runs in an outage", got)
		}
		synctest.Wait()
		if !errors.Is(why, client.ErrUnreachable) {
			t.Errorf("gocron heard %v", why)
		}
		s.Restore()
		pass(time.Minute)
		if len(done.take()) == 0 {
			t.Error("no run after the outage")
		}
	})
}

// A run that asks a server which does not answer is given up, and not late.
func TestALateRunIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		l := locker(t, s.Client(client.Config{}), 4*time.Second)
		s.Pause()
		began := time.Now()
		if _, err := l.Lock(t.Context(), "report"); !errors.Is(err, client.ErrUnreachable) {
			t.Errorf("Lock returned %v", err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		s.Resume()
		pass(10 * time.Second)
		s.Free("gocron:report") // what was asked for in vain is given back
	})
}

func TestAJobHearsThatItsLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		l := locker(t, s.Client(client.Config{}), time.Second)
		var cause error
		var token int64
		add(t, scheduler(t, gocron.WithDistributedLocker(l)), time.Hour, l.Task(func(ctx context.Context) error {
			token = client.Fence(ctx)
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		}), gocron.WithStartAt(gocron.WithStartImmediately()))
		time.Sleep(time.Minute) // longer than a lease: it is renewed
		if cause != nil {
			t.Fatalf("the job ended with %v", cause)
		}
		s.Take("gocron:report", time.Minute)
		pass(time.Minute)
		var lost *client.LostError
		if !errors.As(cause, &lost) || !errors.Is(cause, client.ErrLost) {
			t.Errorf("the cause is %v", cause)
		}
		if token == 0 {
			t.Error("no token")
		}
	})
}

// A job of Task ends with the scheduler too, and its lock can be had then. In real time: gocron's
// Shutdown waits for its jobs in a loop that never blocks.
func TestAJobEndsWithItsScheduler(t *testing.T) {
	s := locktest.New(t)
	// A lock that is not kept: its minHold is there for how long gocron may ask, on a busy machine too.
	l := locker(t, s.Client(client.Config{}), time.Minute, client.WithMinHold(0))
	sched, err := gocron.NewScheduler(gocron.WithDistributedLocker(l))
	if err != nil {
		t.Fatal(err)
	}
	sched.Start()
	started := make(chan error, 1)
	ended := false
	add(t, sched, time.Hour, l.Task(func(ctx context.Context) error {
		started <- nil
		<-ctx.Done()
		ended = true
		return nil
	}), gocron.WithStartAt(gocron.WithStartImmediately()),
		gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { started <- err })))
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	if err := sched.Shutdown(); err != nil || !ended {
		t.Errorf("%v, ended: %v", err, ended)
	}
	s.Await("gocron:report", func(i client.Info) bool { return !i.Held })
}

// Jobs of Task would all have the name of Task's own function, and so one lock.
func TestAJobOfTaskNeedsAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		l := locker(t, s.Client(client.Config{}), time.Second)
		var why error
		_, err := scheduler(t, gocron.WithDistributedLocker(l)).NewJob(gocron.DurationJob(time.Second),
			l.Task(func(context.Context) error { t.Error("it runs"); return nil }),
			gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { why = err })))
		if err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		if !errors.Is(why, client.ErrArgument) {
			t.Errorf("gocron heard %v", why)
		}
	})
}

func TestAJobOfTaskNeedsItsLocker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		l := locker(t, s.Client(client.Config{}), time.Second)
		var why error
		add(t, scheduler(t), time.Second, l.Task(func(context.Context) error { t.Error("it runs"); return nil }),
			gocron.WithEventListeners(gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) {
				why = err
			})))
		pass(5 * time.Second)
		if !errors.Is(why, holdfastgocron.ErrNoLock) {
			t.Errorf("the job returned %v", why)
		}
	})
}

func TestNewLockerWantsAMinHold(t *testing.T) {
	for _, d := range []time.Duration{0, -time.Second} {
		if _, err := holdfastgocron.NewLocker(nil, d); !errors.Is(err, client.ErrArgument) {
			t.Errorf("NewLocker(%v) returned %v", d, err)
		}
	}
}

// gocron logs nothing of a Locker's error. That another scheduler has the run is none; that none has it is.
func TestARunThatNobodyHasIsLogged(t *testing.T) {
	for name, fault := range map[string]func(*locktest.Server){
		"server unreachable": func(s *locktest.Server) { s.Cut() },
		"nobody gets it yet": (*locktest.Server).Forget, // a guard
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			before := slog.Default()
			slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
			defer slog.SetDefault(before)
			synctest.Test(t, func(t *testing.T) {
				s := locktest.New(t)
				var done runs
				for range 2 {
					l := locker(t, s.Client(client.Config{Guard: 40 * time.Second}), 9*time.Second)
					add(t, scheduler(t, gocron.WithDistributedLocker(l)), 10*time.Second, gocron.NewTask(done.add))
				}
				pass(65 * time.Second)
				if len(done.take()) == 0 || log.Len() > 0 {
					t.Errorf("runs are no errors: %s", &log)
				}
				fault(s)
				pass(15 * time.Second)
				if len(done.take()) > 0 || !strings.Contains(log.String(), name) {
					t.Errorf("nothing is logged: %q", &log)
				}
			})
		})
	}
}
