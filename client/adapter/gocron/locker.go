// SPDX-License-Identifier: Apache-2.0

package holdfastgocron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
)

// ErrNoLock is what a job of Task ends with that runs without the lock that it was made for: the
// Locker or Elector is not that of the scheduler or the job.
var ErrNoLock = errors.New("the job runs without its lock")

// longestAsk bounds how long a run waits for Redis: a late run is worse than none.
const longestAsk = 5 * time.Second

// Locker is a [gocron.Locker]: it lets one scheduler of the fleet have each run of a job. It is safe
// for concurrent use, and any number of jobs and schedulers of a process may share one.
type Locker struct {
	client *client.Client
	ask    time.Duration
	opts   []client.Option

	running sync.Map // of *client.Lock, by the context of the job, which gocron gives to both
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker for jobs whose runs are at least minHold apart: a little less than the
// interval, see the package. opts change the locks further; with client.WithMinHold(0) a lock ends
// with its job.
//
// The process that holds a lock may die. Then others can have it when both minHold and its lease,
// which is the client's, are over.
//
// Errors: client.ErrArgument when minHold is not positive.
func NewLocker(c *client.Client, minHold time.Duration, opts ...client.Option) (*Locker, error) {
	if minHold <= 0 {
		return nil, fmt.Errorf("holdfast: gocron: %w: minHold must be positive, not %v", client.ErrArgument, minHold)
	}
	opts = append([]client.Option{
		client.WithMinHold(minHold),
		client.WithFreshAnswer(), // what is known here may be old by now, and the run would be left out
		client.WithoutReentry(),  // a run excludes another one, whatever context the scheduler has
	}, opts...)
	return &Locker{client: c, ask: min(minHold/2, longestAsk), opts: opts}, nil
}

// Lock takes the lock of a run, without waiting for who has it. gocron calls it, and does not run the
// job after an error.
//
// Errors: client.ErrBusy when another scheduler has this run (or runs this job), and as
// client.TryAcquire; client.ErrArgument for a job of Task without a name.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	if strings.HasPrefix(key, wrapped) {
		return nil, fmt.Errorf("holdfast: gocron: %w: a job of Task needs gocron.WithName", client.ErrArgument)
	}
	asking, cancel := context.WithTimeout(ctx, l.ask)
	defer cancel()
	// The job's context ends with its scheduler, and the job may go on: the lock is kept until Unlock.
	opts := append(l.opts[:len(l.opts):len(l.opts)], client.WithLockContext(context.WithoutCancel(ctx)))
	got, err := l.client.TryAcquire(asking, "gocron:"+key, opts...)
	if err != nil {
		// gocron drops it, but for AfterLockError
		var busy *client.BusyError
		if ctx.Err() == nil && (!errors.As(err, &busy) || busy.Why == functions.WhySettling) {
			slog.Warn("holdfast: gocron: run left out, and it may be nobody's", "job", key, "error", err)
		}
		return nil, err
	}
	l.running.Store(ctx, got)
	return &run{l, ctx, got}, nil
}

// Task makes a job that hears of the loss of its lock: fn's context ends then, and when the job's
// does. The job must have a name, by [gocron.WithName], and the scheduler or the job this Locker, or
// else the job ends with ErrNoLock.
//
// gocron tells no two runs of a job apart. If one begins while another one is there (RunNow, or no
// [gocron.WithSingletonMode]), and gets a lock since that of the other is lost or has a limit, then a job that
// begins after it has the context of the later lock, or ErrNoLock when that was given back.
//
//go:noinline
func (l *Locker) Task(fn func(context.Context) error) gocron.Task {
	return gocron.NewTask(func(ctx context.Context) error {
		got, ok := l.running.Load(ctx)
		if !ok {
			return fmt.Errorf("holdfast: gocron: locker: %w", ErrNoLock)
		}
		return under(got.(*client.Lock).Context(), ctx, fn)
	})
}

// under runs fn until lock ends, or the job.
func under(lock, job context.Context, fn func(context.Context) error) error {
	work, cancel := context.WithCancelCause(lock)
	defer cancel(nil)
	defer context.AfterFunc(job, func() { cancel(context.Cause(job)) })()
	return fn(work)
}

// wrapped begins the name that gocron gives to a job of Task: the same for all of them, because Task
// is not inlined.
const wrapped = "github.com/holdfast-go/holdfast/client/adapter/gocron."

// run is the lock of one run.
type run struct {
	locker *Locker
	job    context.Context
	lock   *client.Lock
}

// Unlock gives the lock back; others can have it when its minHold is over. The job's context may be
// over already.
func (r *run) Unlock(ctx context.Context) error {
	r.locker.running.CompareAndDelete(r.job, r.lock)
	return r.lock.Release(ctx)
}
