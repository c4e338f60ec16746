package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/client"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/supervise"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

func runCommand(a *app) *cobra.Command {
	var f runFlags
	var argv []string
	cmd := &cobra.Command{
		Use:     "run NAME [flags] [--] COMMAND [ARG...]",
		GroupID: groupLocks,
		Short:   "Run a command under a lock, as flock(1) does, for all hosts",
		Long: `Run waits for a lock, runs a command under it, and gives the lock back when the command ends. What the command left
running in the background runs on without the lock.

The command gets HOLDFAST_LOCK, HOLDFAST_OWNER and HOLDFAST_FENCE in its environment: the lock's name, its owner and the
fencing token. A resource that refuses tokens lower than it has seen is safe from a holder that has lost the lock.

Signals are passed on. In the foreground of a terminal the command shares the process group of run, and Ctrl-C reaches
both; elsewhere it has a group of its own, and the whole group gets them.

When the lock is lost because it was broken or taken, the command gets SIGTERM, and after --grace SIGKILL. The next
holder may run already in that time: --grace 0 makes it short. When the server is silent, SIGTERM comes before the end
of the lease (by --grace, at most a third of the lease) and SIGKILL at the end: nobody else has the lock before that.
If run itself is killed, Linux kills the command with it (not what the command has started, and not what runs as
another user); on other systems it runs on, beside the next holder. What was stopped (Ctrl-Z) for longer than the lease
is killed when it goes on.

The user needs what "holdfast acl --for client" prints.`,
		Example: `  holdfast run backup -- pg_dump shop
  holdfast run deploy --wait 5m --label "$USER" -- ./deploy.sh --all
  holdfast run report -n -E 75 -c 'make report > today.txt'
  holdfast run nightly --once 23h -- ./nightly.sh`,
		Annotations: map[string]string{ownExitCodes: runExitCodes},
		Args: func(cmd *cobra.Command, args []string) (err error) {
			argv, err = runArguments(cmd, args)
			return err
		},
		ValidArgsFunction: a.completeName(&f.where),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.run(context.WithoutCancel(cmd.Context()), &f, args[0], argv)
		},
	}
	cmd.Flags().SetInterspersed(false) // flags behind the command are the command's
	f.bind(cmd.Flags())
	return cmd
}

// runArguments wants the name of a lock. Flags may come before and behind it; what follows is the
// command.
func runArguments(cmd *cobra.Command, args []string) ([]string, error) {
	if len(args) == 0 || args[0] == "" {
		return nil, oneName(cmd, args)
	}
	rest := args[1:]
	if len(rest) == 0 || !strings.HasPrefix(rest[0], "-") {
		return rest, nil
	}
	if err := cmd.Flags().Parse(rest); err != nil {
		return nil, cmd.FlagErrorFunc()(cmd, err)
	}
	if help, _ := cmd.Flags().GetBool("help"); help {
		return nil, pflag.ErrHelp
	}
	return cmd.Flags().Args(), nil
}

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
		j.say(fmt.Sprintf("%s: not this one's turn: %s, for %s more", printable(j.name), holderText(run.By), short(run.End)))
	}
	if j.flags.flags.Changed("conflict-exit-code") {
		return exit(j.flags.conflict)
	}
	return exit(exitOK)
}

// under runs the command, and gives the lock back.
func (j *job) under(ctx context.Context, lock *client.Lock) (int, error) {
	if j.flags.verbose {
		j.say(fmt.Sprintf("%s: taken after %s, token %d", printable(j.name), short(time.Since(j.began)), lock.Fence()))
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

// open connects to the server.
func (j *job) open(ctx context.Context) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, j.cfg.timeout)
	defer cancel()
	cfg := j.flags.config(j.app)
	if j.flags.quorum {
		if j.cfg.master != "" {
			return nil, usageError{errors.New("--quorum and --sentinel-master exclude each other: name the servers")}
		}
		var options []rueidis.ClientOption
		for _, addr := range j.cfg.addrs {
			single := j.cfg.option(addr)
			single.ForceSingleClient = true
			options = append(options, single)
		}
		return within(ctx, func() (*client.Client, error) { return client.OpenQuorum(options, cfg) })
	}
	option, err := theDeployment(ctx, &j.cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errConnecting, err)
	}
	return within(ctx, func() (*client.Client, error) { return client.Open(option, cfg) })
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
