// SPDX-License-Identifier: Apache-2.0

package holdfastgocron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/client"
)

// ErrNotLeader is what IsLeader returns in a process that does not lead.
var ErrNotLeader = errors.New("not the leader")

const (
	pause  = time.Second // between campaigns that failed
	resign = time.Second // how long Close waits for the answer to a resignation
)

// Elector is a [gocron.Elector]: of the processes that have one of the same name, one leads. It holds
// a lock while it does, and renews it. The others wait in line for it, so the next one leads within
// milliseconds of a resignation, and within the lease of a crash. It is safe for concurrent use.
type Elector struct {
	client *client.Client
	name   string
	opts   []client.Option
	stop   context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	lock    *client.Lock    // not nil while it leads, as far as it was heard
	tasks   *sync.WaitGroup // jobs of Task in this term
	err     error           // why the last campaign or term ended
	changed chan struct{}
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector starts to campaign for the lock of that name, and does so until Close. It does not block.
// opts change the lock; a term with client.WithMaxHold ends then, and the next in line leads when the jobs
// of Task have returned, or after the grace. This process campaigns again meanwhile: a job that does not return
// holds up nothing but itself. On a quorum, which has no line, the same one may lead again. Not with
// client.WithOwner: a process would join its own last term.
//
// The process leads some moments later at the earliest, so jobs that start immediately may find no
// leader. Wait for [Elector.Await] with them.
func NewElector(c *client.Client, name string, opts ...client.Option) *Elector {
	ctx, stop := context.WithCancel(context.Background())
	opts = append([]client.Option{client.WithMaxWait(0)}, opts...)
	e := &Elector{client: c, name: name, opts: opts, stop: stop, done: make(chan struct{}),
		changed: make(chan struct{})}
	go e.campaign(ctx)
	return e
}

// IsLeader returns nil while this process leads. It asks nobody: it looks at the lock and at the
// clock, so it is never nil once another process can lead.
//
// Errors: ErrNotLeader, and also, if it is known, why: for example client.ErrUnreachable when Redis is
// gone, client.ErrLost when the lock was lost, client.ErrClosed after Close. gocron drops the error; a
// health check can ask too. When ctx is over, its error.
func (e *Elector) IsLeader(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, _, err := e.term(false)
	return err
}

// Await blocks until this process leads, and returns the context of that term: it ends when the lock
// is lost, or at Close, and carries the fencing token (client.Fence).
//
// Errors: that of ctx when it ends first, and ErrNotLeader with client.ErrClosed after Close.
func (e *Elector) Await(ctx context.Context) (context.Context, error) {
	for {
		e.mu.Lock()
		changed := e.changed
		e.mu.Unlock()
		term, _, err := e.term(false)
		if err == nil {
			return term, nil
		}
		select {
		case <-changed:
		case <-e.done:
			_, _, err := e.term(false)
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Task makes a job that hears of the end of the term: fn's context ends then, and when the job's does.
// Its values are those of the term: what gocron.WithContext gave is not among them.
// The scheduler must have this Elector, or else the job ends with ErrNoLock where it does not lead.
func (e *Elector) Task(fn func(context.Context) error) gocron.Task {
	return gocron.NewTask(func(ctx context.Context) error {
		term, tasks, err := e.term(true)
		if err != nil {
			return fmt.Errorf("holdfast: gocron: elector: %w: %w", ErrNoLock, err)
		}
		defer tasks.Done()
		return under(term, ctx, fn)
	})
}

// Close resigns and ends the campaign. Shut the scheduler down before, so that no job is running when
// another process leads. client.Client's Shutdown does the same, and waits for the jobs of Task: after it no Close
// is needed. Close blocks for a second at the most; if Redis does not answer in that time, the
// lease ends the term for the others. It is safe to call twice.
func (e *Elector) Close() {
	e.stop()
	<-e.done
}

// term is the context of the present term, and its jobs. With job it is over when that has called Done of them.
func (e *Elector) term(job bool) (context.Context, *sync.WaitGroup, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	lock, err := e.lock, e.err
	switch {
	case lock != nil && lock.Context().Err() == nil:
		if job {
			e.tasks.Add(1)
		}
		return lock.Context(), e.tasks, nil
	case lock != nil:
		err = context.Cause(lock.Context())
	}
	if err == nil {
		return nil, nil, fmt.Errorf("holdfast: gocron: %w", ErrNotLeader)
	}
	return nil, nil, fmt.Errorf("holdfast: gocron: %w: %w", ErrNotLeader, err)
}

func (e *Elector) campaign(ctx context.Context) {
	var ending sync.WaitGroup // terms
	defer func() {
		if ctx.Err() != nil { // then they end at once; else, as the client closes, a job may never return
			ending.Wait()
		}
		close(e.done)
	}()
	for ctx.Err() == nil {
		lock, err := e.client.Acquire(ctx, e.name, e.opts...)
		if err == nil {
			e.set(lock, nil)
			select {
			case <-lock.Context().Done():
			case <-ctx.Done(): // the lock's context can be another's, by an option
			}
			why, tasks := context.Cause(lock.Context()), e.tasks
			e.set(nil, why)
			// The lock is ours yet: in a shutdown until its release, and after a limit for the grace.
			switch {
			case errors.Is(why, client.ErrMaxHold) || errors.Is(why, client.ErrMaxRenewals):
				ending.Go(func() {
					wait(ctx, tasks)
					giveBack(ctx, lock)
				})
				continue // a job may never return
			case errors.Is(why, client.ErrShutdown):
				wait(ctx, tasks)
			}
			giveBack(ctx, lock)
			continue
		}
		if ctx.Err() != nil {
			break
		}
		e.set(nil, err)
		if errors.Is(err, client.ErrClosed) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	e.set(nil, client.ErrClosed)
}

// wait blocks until none of a term's jobs is running, or ctx ends, at Close.
func wait(ctx context.Context, tasks *sync.WaitGroup) {
	idle := make(chan struct{})
	go func() {
		tasks.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// giveBack ends a term at the server too. A lock that is lost has nothing to give back.
func giveBack(ctx context.Context, lock *client.Lock) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resign)
	defer cancel()
	_ = lock.Release(ctx) // goes on in the background, or the lease ends it
}

func (e *Elector) set(lock *client.Lock, err error) {
	e.mu.Lock()
	// gocron drops what IsLeader says, and what the client logs is not about the deployment.
	tell := errors.Is(err, client.ErrInvalid) && (e.err == nil || e.err.Error() != err.Error())
	e.lock, e.err, e.tasks = lock, err, new(sync.WaitGroup)
	close(e.changed)
	e.changed = make(chan struct{})
	e.mu.Unlock()
	if tell {
		slog.Warn("holdfast: gocron: nobody can lead", "name", e.name, "error", err)
	}
}
