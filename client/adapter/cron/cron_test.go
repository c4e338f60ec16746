// SPDX-License-Identifier: Apache-2.0

package holdfastcron_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/client"
	holdfastcron "github.com/holdfast-go/holdfast/client/adapter/cron"
	"github.com/holdfast-go/holdfast/client/locktest"
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

// journal is a logger.
type journal struct {
	mu   sync.Mutex
	errs []error
	left int
}

func (j *journal) Info(string, ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.left++
}

func (j *journal) Error(err error, _ string, _ ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.errs = append(j.errs, err)
}

func (j *journal) read() (left int, errs []error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.left, slices.Clone(j.errs)
}

// heard fails the test unless an error of that kind was logged.
func (j *journal) heard(t *testing.T, kind error) {
	t.Helper()
	_, errs := j.read()
	if !errors.Is(errors.Join(errs...), kind) {
		t.Errorf("the logger heard %v, not %v", errs, kind)
	}
}

// process is a process of the fleet that runs job on a schedule until the test ends.
func process(
	t *testing.T, c *client.Client, schedule string, minHold time.Duration, job cron.Job, opts ...client.Option,
) *journal {
	t.Helper()
	log := &journal{}
	once, err := holdfastcron.Once(c, "report", minHold, log, opts...)
	if err != nil {
		t.Fatal(err)
	}
	start(t, schedule, cron.NewChain(once).Then(job))
	return log
}

func start(t *testing.T, schedule string, job cron.Job) {
	t.Helper()
	cr := cron.New(cron.WithSeconds())
	if _, err := cr.AddJob(schedule, job); err != nil {
		t.Fatal(err)
	}
	cr.Start()
	t.Cleanup(func() { <-cr.Stop().Done() })
}

// pass lets virtual time pass, and what is due then happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Processes whose clocks are 2 s apart, and processes that count from their own starts 20 s apart: the
// job, which takes no time, is run once per interval.
func TestOneOfTheFleetRunsTheJob(t *testing.T) {
	const minHold = 54 * time.Second
	for name, schedules := range map[string][]string{
		"clocks that differ": {"0 * * * * *", "2 * * * * *", "4 * * * * *"},
		"from each start":    {"@every 1m", "@every 1m", "@every 1m"},
	} {
		fleet := func(t *testing.T, opts ...client.Option) []time.Time {
			s := locktest.New(t)
			var done runs
			for _, schedule := range schedules {
				process(t, s.Client(client.Config{}), schedule, minHold, cron.FuncJob(done.add), opts...)
				pass(20 * time.Second)
			}
			pass(2 * time.Minute)
			done.take()
			pass(20 * time.Minute)
			return done.take()
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				at := fleet(t)
				if len(at) < 19 || len(at) > 21 {
					t.Errorf("%d runs in 20 minutes, not 20", len(at))
				}
				for i := range at[1:] {
					if gap := at[i+1].Sub(at[i]); gap < minHold {
						t.Errorf("two runs are %v apart", gap)
					}
				}
			})
		})
		t.Run(name+", without minHold", func(t *testing.T) { // so that it is minHold that does it
			synctest.Test(t, func(t *testing.T) {
				if at := fleet(t, client.WithMinHold(0)); len(at) < 57 {
					t.Errorf("%d runs in 20 minutes", len(at))
				}
			})
		})
	}
}

// A job that takes longer than its interval, and than its lease, runs alone.
func TestALongJobRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		var mu sync.Mutex
		running, most, times := 0, 0, 0
		job := cron.FuncJob(func() {
			mu.Lock()
			running++
			times++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(100 * time.Second)
			mu.Lock()
			running--
			mu.Unlock()
		})
		var logs []*journal
		for range 3 {
			logs = append(logs, process(t, s.Client(client.Config{}), "*/10 * * * * *", 9*time.Second, job))
		}
		pass(20 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if most != 1 || times < 10 {
			t.Errorf("%d at once, %d runs", most, times)
		}
		for _, log := range logs {
			if left, errs := log.read(); left == 0 || len(errs) > 0 {
				t.Errorf("%d runs left out, errors %v", left, errs)
			}
		}
	})
}

func TestNoRunWhileRedisIsUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		var done runs
		log := process(t, s.Client(client.Config{}), "*/10 * * * * *", 9*time.Second, cron.FuncJob(done.add))
		pass(time.Minute)
		if len(done.take()) < 5 {
			t.Fatal("it does not run")
		}
		s.Cut()
		pass(time.Minute)
		if got := len(done.take()); got != 0 {
			t.Errorf("%d runs in an outage", got)
		}
		log.heard(t, client.ErrUnreachable)
		s.Restore()
		pass(time.Minute)
		if len(done.take()) == 0 {
			t.Error("no run after the outage")
		}
	})
}

func TestAJobHearsThatItsLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		var cause error
		var token int64
		log := process(t, s.Client(client.Config{}), "@every 1h", time.Second, holdfastcron.Job(func(ctx context.Context) {
			token = client.Fence(ctx)
			<-ctx.Done()
			cause = context.Cause(ctx)
		}))
		pass(time.Hour + time.Minute)
		if cause != nil { // longer than a lease: it is renewed
			t.Fatalf("the job ended with %v", cause)
		}
		s.Take("cron:report", time.Minute)
		pass(time.Minute)
		if !errors.Is(cause, client.ErrLost) {
			t.Errorf("the cause is %v", cause)
		}
		if token == 0 {
			t.Error("no token")
		}
		log.heard(t, client.ErrLost)
	})
}

// A run is left out while the run before it goes on, also if that one's lock was lost.
func TestARunDoesNotBeginBesideTheRunBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		wrap, err := holdfastcron.Once(s.Client(client.Config{}), "report", time.Minute, cron.DiscardLogger)
		if err != nil {
			t.Fatal(err)
		}
		var running, most atomic.Int64
		job := wrap(cron.FuncJob(func() {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(10 * time.Minute)
		}))
		go job.Run()
		time.Sleep(2 * time.Second)
		s.Delete("cron:report") // an operator, or a failover
		time.Sleep(2 * time.Minute)
		go job.Run()
		time.Sleep(20 * time.Minute)
		if most.Load() != 1 {
			t.Errorf("%d runs went on at once in one process", most.Load())
		}
	})
}

// A shutdown of the client ends the job's context, and waits for the job, which has its lock until then.
func TestAShutdownWaitsForTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		c := s.Client(client.Config{})
		var token, ended int64
		log := process(t, c, "@every 1m", time.Second, holdfastcron.Job(func(ctx context.Context) {
			token = client.Fence(ctx)
			<-ctx.Done()
			time.Sleep(10 * time.Minute)
			if errors.Is(context.Cause(ctx), client.ErrShutdown) {
				ended = s.Inspect("cron:report").Fence
			}
		}))
		pass(90 * time.Second)
		if err := c.Shutdown(t.Context()); err != nil || token == 0 || ended != token {
			t.Errorf("%v, the job's token was %d, and %d when it ended", err, token, ended)
		}
		s.Free("cron:report")
		pass(time.Minute)
		log.heard(t, client.ErrShutdown)
	})
}

// The lock of a job that panics is given back.
func TestAJobThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		once, err := holdfastcron.Once(s.Client(client.Config{}), "report", time.Second, nil)
		if err != nil {
			t.Fatal(err)
		}
		log := &journal{}
		start(t, "@every 1m", cron.NewChain(cron.Recover(log), once).Then(cron.FuncJob(func() { panic("report") })))
		pass(time.Minute + 5*time.Second)
		if _, errs := log.read(); len(errs) != 1 {
			t.Errorf("Recover heard %v", errs)
		}
		s.Free("cron:report")
	})
}

// Two jobs with one wrapper would leave out each other's runs.
func TestOneWrapperIsForOneJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		log := &journal{}
		once, err := holdfastcron.Once(s.Client(client.Config{}), "report", time.Second, log)
		if err != nil {
			t.Fatal(err)
		}
		var first runs
		start(t, "@every 1m", once(cron.FuncJob(first.add)))
		start(t, "@every 1m", once(cron.FuncJob(func() { t.Error("the second job runs") })))
		pass(time.Minute + time.Second)
		if got := len(first.take()); got != 1 {
			t.Errorf("%d runs of the first job", got)
		}
		log.heard(t, client.ErrArgument)
	})
}

func TestOnceChecksItsArguments(t *testing.T) {
	for name, d := range map[string]time.Duration{"": time.Second, "a": 0, "b": -time.Second} {
		if _, err := holdfastcron.Once(nil, name, d, nil); !errors.Is(err, client.ErrArgument) {
			t.Errorf("Once(%q, %v) returned %v", name, d, err)
		}
	}
}

// While a guard lasts nobody in the fleet has the run: that is an error, and not that another one has it.
func TestARunThatNobodyHasIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		var done runs
		var journals []*journal
		for range 3 {
			c := s.Client(client.Config{Lease: 30 * time.Second, Guard: 40 * time.Second})
			journals = append(journals, process(t, c, "@every 1h", 54*time.Minute, cron.FuncJob(done.add)))
		}
		time.Sleep(time.Hour - 10*time.Second)
		s.Forget()
		time.Sleep(time.Minute)
		if n := len(done.take()); n != 0 {
			t.Fatalf("%d runs", n)
		}
		for _, j := range journals {
			j.heard(t, client.ErrBusy)
		}
	})
}
