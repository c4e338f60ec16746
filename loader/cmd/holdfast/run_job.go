package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/supervise"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

// job is a command on its way to its lock.
type job struct {
	*app
	flags   *runFlags
	name    string
	command *supervise.Command
	signals chan os.Signal
	stop    context.CancelCauseFunc // ends the wait, and later the giving back
	began   time.Time
}

func (a *app) run(ctx context.Context, f *runFlags, name string, argv []string) error {
	if err := f.check(a.cfg.json); err != nil {
		return usageError{err}
	}
	command, err := f.command(a, argv)
	if err != nil {
		return usageError{err}
	}
	j := &job{app: a, flags: f, name: name, command: command, signals: supervise.Catch(), began: time.Now()}
	if err := command.Find(); err != nil {
		return j.notStarted(err)
	}
	ctx, j.stop = context.WithCancelCause(ctx)
	defer j.stop(nil)
	quiet := j.interruptible()
	c, err := j.open(ctx)
	if err != nil {
		return j.refused(ctx, nil, err)
	}
	defer c.Close()
	if f.once > 0 {
		return j.once(ctx, c, quiet)
	}
	lock, err := j.acquire(ctx, c)
	if err != nil {
		return j.refused(ctx, c, err)
	}
	quiet()
	code, err := j.under(ctx, lock)
	if err != nil {
		return err
	}
	return exit(code)
}

func (j *job) acquire(ctx context.Context, c *client.Client) (*client.Lock, error) {
	if !j.flags.noWait {
		return c.Acquire(ctx, j.name)
	}
	// The lock must not end with the time for the question.
	asking, cancel := context.WithTimeout(ctx, j.cfg.timeout)
	defer cancel()
	return c.TryAcquire(asking, j.name, client.WithLockContext(ctx))
}

// once is run --once. The lock that client.Once has is re-entered, which shows all of it.
func (j *job) once(ctx context.Context, c *client.Client, quiet func()) error {
	var code int
	var failed error
	run, err := c.Once(ctx, j.name, time.Duration(j.flags.once), func(ctx context.Context) error {
		quiet()
		lock, err := c.TryAcquire(ctx, j.name)
		if err != nil {
			return err
		}
		code, failed = j.under(ctx, lock)
		return nil
	})
	var lost *client.LostError
	switch {
	case failed != nil:
		return failed
	case run.Ran && errors.As(err, &lost):
		return exit(lostCode(lost)) // under has said why
	case err != nil:
		return j.refused(ctx, c, err)
	case run.Ran:
		return exit(code)
	}
	if j.tells() {
		j.say(fmt.Sprintf("%s: not this one's turn: %s, for %s more", printable(j.name), holderText(run.By),
			short(run.End)))
	}
	if j.flags.flags.Changed("conflict-exit-code") {
		return exit(j.flags.conflict)
	}
	return exit(exitOK)
}

// under runs the command, and gives the lock back.
func (j *job) under(ctx context.Context, lock *client.Lock) (int, error) {
	if j.flags.verbose {
		j.say(fmt.Sprintf("%s: taken after %s, token %d", printable(j.name), short(time.Since(j.began)),
			lock.Fence()))
	}
	if caught, ok := context.Cause(ctx).(interrupted); ok {
		_ = lock.Release(ctx)
		return supervise.Code(caught.Signal), nil
	}
	j.command.Env = append(os.Environ(), "HOLDFAST_LOCK="+j.name, "HOLDFAST_OWNER="+lock.Owner(),
		"HOLDFAST_FENCE="+strconv.FormatInt(lock.Fence(), 10))
	result, err := j.command.Run(lock, j.signals)
	// A server that is silent must not hold up who waits for the command.
	giveUp := time.AfterFunc(j.cfg.nodeTimeout(), func() { j.stop(nil) })
	defer giveUp.Stop()
	released := lock.Release(ctx)
	switch {
	case err != nil:
		return 0, j.notStarted(err)
	case result.Lost != nil:
		return lostCode(result.Lost), nil
	case errors.Is(released, client.ErrLost):
		j.say(text(released))
		return lostCode(released), nil
	case released != nil:
		j.say(text(released) + " (the others wait until the lease ends)")
	}
	return result.Code, nil
}

// notStarted is a command that cannot be run.
func (j *job) notStarted(err error) error {
	j.say(err.Error())
	var failed *supervise.StartError
	if errors.As(err, &failed) {
		return exit(failed.Code)
	}
	return exit(runInternal)
}

// refused is a lock that was not had. c is nil if there is no connection.
func (j *job) refused(ctx context.Context, c *client.Client, err error) error {
	if caught, ok := context.Cause(ctx).(interrupted); ok {
		return exit(supervise.Code(caught.Signal))
	}
	var usage usageError
	if errors.As(err, &usage) {
		return usage
	}
	if errors.Is(err, client.ErrBusy) || errors.Is(err, client.ErrTimeout) {
		if j.tells() {
			j.say(j.holder(ctx, c, err))
		}
		return exit(j.flags.conflict)
	}
	j.say(text(j.clientError(err)))
	return exit(runCode(err, j.flags.conflict))
}

// tells reports whether to say who has the lock. flock(1) does not.
func (j *job) tells() bool {
	return j.flags.printHolder || j.flags.verbose || terminal.Is(j.stderr)
}

// text is an error behind the command's name.
func text(err error) string { return strings.TrimPrefix(err.Error(), "holdfast: ") }

// say prints a line about what happens.
func (a *app) say(line string) { fmt.Fprintf(a.stderr, "holdfast run: %s\n", line) }
