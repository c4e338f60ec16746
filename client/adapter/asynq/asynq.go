// SPDX-License-Identifier: Apache-2.0

// Package holdfastasynq runs one scheduler of hibiken/asynq in a fleet, with a lock of Holdfast.
//
//	import holdfastasynq "github.com/holdfast-go/holdfast/client/adapter/asynq"
//
//	// c is a *client.Client
//	err := holdfastasynq.Run(ctx, c, "scheduler", func() (holdfastasynq.Scheduler, error) {
//		s := asynq.NewScheduler(redis, nil)
//		_, err := s.Register("@every 1h", asynq.NewTask("report", nil))
//		return s, err
//	})
//
// asynq's schedulers do not know of each other: each one that runs enqueues every periodic task, so a
// fleet of three enqueues it three times. Here every process calls Run, one of them leads, and its
// scheduler runs. The others wait in line: one of them leads within milliseconds of the leader's
// orderly end, and within the lease of its crash.
//
// # When Redis cannot be reached
//
// The leader's scheduler runs on until the lease ends by this process's own clock; then it is shut
// down, and nobody's runs until Redis is back. That is the Redis of the locks. It need not be that of
// the tasks.
//
// # When the lock is lost
//
// By a long outage, a failover, or an operator who breaks it. The scheduler is shut down at once, and
// the process campaigns again. Another one may lead by then: asynq's Shutdown waits for a task that is
// being enqueued, and that one may be enqueued twice, by both. Give tasks for which that matters
// asynq.Unique or an asynq.TaskID. The Shutdown of a PeriodicTaskManager first waits for a GetConfigs that is
// under way, and enqueues all that is due meanwhile: give GetConfigs a time-out.
//
// # Clocks
//
// A scheduler enqueues by the clock of its process, and does not make up for what fell between two
// leaders. A new leader whose clock is behind can enqueue once more what was enqueued a moment before
// the change; asynq.Unique with a little less than the interval keeps that out.
package holdfastasynq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/client"
)

// Scheduler is what Run runs. Start does not block, and Shutdown blocks until nothing is enqueued any
// more.
type Scheduler interface {
	Start() error
	Shutdown()
}

var (
	_ Scheduler = (*asynq.Scheduler)(nil)
	_ Scheduler = (*asynq.PeriodicTaskManager)(nil)
)

const (
	pause  = time.Second // between campaigns that failed
	resign = time.Second // how long a resignation waits for its answer
)

// Run campaigns for the lock of that name until ctx ends, and runs a scheduler whenever this process
// leads. It blocks. create makes the scheduler of one term: asynq's cannot be started again once they
// were shut down, so it makes a new one each time. opts change the lock.
//
// When ctx ends, or the client's Shutdown is called, Run shuts the scheduler down and resigns. The lock is held
// until the shutdown is complete. Run returns nil in the first case, and client.ErrShutdown in the second, which
// blocks until the lock is given on. If the lock is lost, or Redis cannot be reached, Run shuts the scheduler down
// and campaigns again.
//
// Errors: client.ErrClosed and client.ErrInvalid, because no campaign can be won with them; and those of create
// and Start, after a resignation, so that another process can lead. If these have one cause for all, as a
// PeriodicTaskManager whose database is away, Run ends in each process, one after the other: call it again after
// a pause, or end the process.
func Run(
	ctx context.Context, c *client.Client, name string, create func() (Scheduler, error), opts ...client.Option,
) error {
	// the shutdown comes after the end of ctx, and can take longer than a lease
	held := client.WithLockContext(context.WithoutCancel(ctx))
	opts = append([]client.Option{client.WithMaxWait(0), client.WithoutReentry(), held}, opts...)
	for ctx.Err() == nil {
		lock, err := c.Acquire(ctx, name, opts...)
		if err == nil {
			if err := lead(ctx, lock, create); err != nil {
				return err
			}
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, client.ErrClosed) || errors.Is(err, client.ErrInvalid) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// lead is one term.
func lead(ctx context.Context, lock *client.Lock, create func() (Scheduler, error)) error {
	defer giveBack(lock)
	s, err := create()
	if err != nil {
		return fmt.Errorf("holdfast: asynq: make a scheduler: %w", err)
	}
	if err := s.Start(); err != nil {
		return fmt.Errorf("holdfast: asynq: start the scheduler: %w", err)
	}
	select {
	case <-ctx.Done():
	case <-lock.Context().Done():
	}
	s.Shutdown()
	return nil
}

// giveBack ends a term at the server too. A lock that is lost has nothing to give back.
func giveBack(lock *client.Lock) {
	ctx, cancel := context.WithTimeout(context.Background(), resign)
	defer cancel()
	_ = lock.Release(ctx) // goes on in the background, or the lease ends it
}
