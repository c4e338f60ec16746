// SPDX-License-Identifier: Apache-2.0

// Package holdfastgocron lets a fleet of gocron v2 schedulers run each job once, with locks of Holdfast.
//
//	import holdfastgocron "github.com/holdfast-go/holdfast/client/adapter/gocron"
//
//	locker, err := holdfastgocron.NewLocker(c, 54*time.Second) // c is a *client.Client
//	...
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	...
//	s.NewJob(gocron.DurationJob(time.Minute), locker.Task(report), gocron.WithName("report"))
//
// There are two ways, and a scheduler takes one of them. With a [Locker] each run of each job goes
// to the first scheduler that asks for it, so the load is spread. With an [Elector] one scheduler
// runs all jobs, for as long as its process lives. gocron's own tests of lockers and electors pass with
// both.
//
// # Short jobs and clocks
//
// A lock that ends with the job does not keep a short job from running again. The schedulers of a
// fleet start the same run at different times: by as much as their clocks differ, and those of a
// DurationJob by up to the whole interval, because each one counts from its own start. The first one
// has the lock, is done in a millisecond, and gives it back; the next one finds it free and runs the
// job again (gocron's issue 841).
//
// So a Locker keeps the lock from others for a time after it was taken, minHold, however short the
// job was. Redis counts that time, so the clocks of the fleet do not matter to it. Of any minHold a
// job runs at most once. Make it a little less than the interval: by more than a scheduler's own runs
// come early, or else a run finds the lock of the one before it, and is left out. Nine tenths of the
// interval is right for most jobs. Jobs of different intervals have a Locker each, with
// [gocron.WithDistributedJobLocker].
//
// An Elector does not look at runs. When the leader goes, a new one whose clock is behind can do once
// more what was done at that moment, and one whose clock is ahead leaves it out.
//
// # When Redis cannot be reached
//
// The job does not run. A Locker asks for half of minHold and for five seconds at most; then the run
// is left out, and [gocron.AfterLockError] hears why. A leader leads on until its lease ends by its
// own clock, which is before anybody else can lead; then no process leads until Redis is back.
//
// # When the lock is lost during a job
//
// A lock is renewed while the job runs. It can be lost all the same: in an outage that is longer than
// the lease, by a failover, or by an operator who breaks it. gocron has no way to hand a lock's
// context to a job, so a job that shall hear of that is made by [Locker.Task] or [Elector.Task]: its
// context ends then, and its cause is a *client.LostError. It also carries the fencing token, see
// client.Fence. Other jobs run on beside the next holder.
//
// # Shutdown
//
// Call Shutdown of the scheduler, and then that of the client. The first one ends the contexts of jobs, and waits
// for them for 10 s at most ([gocron.WithStopTimeout]). The second one waits for those that still run, which have
// their locks until they return; with an Elector that is so for jobs of [Elector.Task] only. It resigns too, so
// Elector.Close is not needed. Called first, it ends the contexts of jobs of both kinds of Task, with
// client.ErrShutdown as the cause.
//
// # Names
//
// The lock of a job is named "gocron:" and the job's name. Give each job a name with
// [gocron.WithName]: by default it is that of its function, and two programs that share a Redis both
// have a main.main.func1. The client's Prefix keeps the locks of one application apart from another's.
package holdfastgocron
