// SPDX-License-Identifier: Apache-2.0

// Package holdfastcron lets one process of a fleet run each job of robfig/cron v3, with locks of Holdfast.
//
//	import holdfastcron "github.com/holdfast-go/holdfast/client/adapter/cron"
//
//	once, err := holdfastcron.Once(c, "report", 54*time.Minute, nil) // c is a *client.Client
//	...
//	job := cron.NewChain(once).Then(holdfastcron.Job(report))
//	cron.New().AddJob("@hourly", job)
//
// Every process schedules the job. The first that asks for a run has it, and the others leave it out.
//
// # Short jobs and clocks
//
// The clocks of a fleet differ, so its processes start the same run at different times; with @every by
// up to the whole interval, because each process counts from its own start. A lock that ends with the
// job does not help then: the first process is done in a millisecond and gives it back, and the next
// one finds it free. So the lock is kept from others for a time after it was taken, minHold, however
// short the job was. Redis counts that time, so the clocks of the fleet do not matter to it. Of any
// minHold the job runs at most once. Make it a little less than the shortest interval of the schedule:
// by more than a process's own runs come early, or else a run finds the lock of the one before it, and
// is left out. Nine tenths of it is right for most jobs.
//
// # When Redis cannot be reached
//
// The job does not run. A run asks for half of minHold and for five seconds at most, and is left out
// then. The logger hears why: this is an error, and so is a server that grants no locks yet
// (client.Config.Guard). That another process has the run is none.
//
// # When the lock is lost during a job
//
// The lock is renewed while the job runs, however long that takes. It can be lost all the same: in an
// outage that is longer than the lease, by a failover, or by an operator who breaks it. The context of
// a [Job] ends then, and its cause is a *client.LostError. It also carries the fencing token, see
// client.Fence. A job of another type runs on beside the next holder, and the logger hears of it when
// the job is done.
//
// # Shutdown
//
// Call Stop of the scheduler, and at once Shutdown of the client: it ends the contexts of jobs, whose cause is
// client.ErrShutdown, and blocks until they have returned and their locks are given back. A run that is due after
// that is left out, and the logger hears of it. A minHold is kept.
package holdfastcron

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
)

// longestAsk bounds how long a run waits for Redis: a late run is worse than none.
const longestAsk = 5 * time.Second

// Job is a job that hears of the loss of its lock: its context ends then. Once must be the innermost
// wrapper of it, the last one of the chain.
type Job func(ctx context.Context)

// Run runs the job without a lock, as cron does where Once does not wrap it.
func (j Job) Run() { j(context.Background()) }

// Once returns a wrapper that lets one process of the fleet have each run of a job. The lock is named
// "cron:" and name, the same in all processes; the client's Prefix keeps the locks of one application
// apart from another's. Runs are at least minHold apart: a little less than the interval, see the
// package. A run of a job whose run before it has not ended is left out too.
//
// One wrapper is for one job: the second job that it is given never runs, and says so in the log. So
// it belongs in a chain of the job, not in cron.WithChain.
//
// logger gets the runs that are left out, and why; nil is cron.DefaultLogger. opts change the lock
// further; with client.WithMinHold(0) it ends with the job, and with client.WithLockContext the Job's
// context has another parent than context.Background.
//
// The process that holds the lock may die. Then others can have it when both minHold and its lease,
// which is the client's, are over.
//
// Errors: client.ErrArgument when name is empty or minHold is not positive.
func Once(
	c *client.Client, name string, minHold time.Duration, logger cron.Logger, opts ...client.Option,
) (cron.JobWrapper, error) {
	if name == "" {
		return nil, fmt.Errorf("holdfast: cron: %w: name must not be empty", client.ErrArgument)
	}
	if minHold <= 0 {
		return nil, fmt.Errorf("holdfast: cron: %w: minHold must be positive, not %v", client.ErrArgument, minHold)
	}
	if logger == nil {
		logger = cron.DefaultLogger
	}
	o := &once{client: c, name: "cron:" + name, logger: logger, ask: min(minHold/2, longestAsk)}
	o.opts = append([]client.Option{
		client.WithLockContext(context.Background()),
		client.WithMinHold(minHold),
		client.WithFreshAnswer(), // what is known here may be old by now, and the run would be left out
		client.WithoutReentry(),  // a run excludes another one, whatever context the job has
	}, opts...)
	return o.wrap, nil
}

type once struct {
	client *client.Client
	name   string
	ask    time.Duration
	logger cron.Logger
	opts   []client.Option
	used   atomic.Bool
	runs   atomic.Bool // a run goes on: it may have lost its lock
}

func (o *once) wrap(job cron.Job) cron.Job {
	if o.used.Swap(true) {
		return cron.FuncJob(func() {
			err := fmt.Errorf("holdfast: cron: %w: one wrapper is for one job", client.ErrArgument)
			o.logger.Error(err, "job left out", "lock", o.name)
		})
	}
	return cron.FuncJob(func() { o.run(job) })
}

// run is one run of the job.
func (o *once) run(job cron.Job) {
	if o.runs.Swap(true) {
		o.logger.Info("run left out: the one before it goes on", "lock", o.name)
		return
	}
	defer o.runs.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), o.ask)
	lock, err := o.client.TryAcquire(ctx, o.name, o.opts...)
	cancel()
	var busy *client.BusyError
	switch {
	case errors.As(err, &busy) && busy.Why != functions.WhySettling: // with a guard it may be nobody's
		o.logger.Info("run left out: another one has it, or had it within minHold", "lock", o.name, "holder", busy.Holder)
		return
	case err != nil:
		o.logger.Error(err, "run left out", "lock", o.name)
		return
	}
	defer func() { // also when the job panics
		if err := lock.Release(context.Background()); err != nil {
			o.logger.Error(err, "lock not given back", "lock", o.name)
		}
	}()
	if j, ok := job.(Job); ok {
		j(lock.Context())
		return
	}
	job.Run()
}
