// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
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

With --limit several commands have the lock at once, that many at most, and with --shared all that share it, while those
that want it alone wait. HOLDFAST_SLOT is then a number from 1 on that no other of them has; otherwise it is 0.

Signals are passed on. In the foreground of a terminal the command shares the process group of run, and Ctrl-C reaches
both; elsewhere it has a group of its own, and the whole group gets them. Where one ended the command, as SIGTERM does
the shell of -c, the lock is kept until all of the group has ended.

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
  holdfast run nightly --once 22h -- ./nightly.sh
  holdfast run thumbnails --limit 4 -- ./thumbnails.sh`,
		Annotations: map[string]string{ownExitCodes: runExitCodes},
		Args: func(cmd *cobra.Command, args []string) (err error) {
			argv, err = runArguments(cmd, args)
			return err
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault // the command: files
			}
			return a.completeName(&f.where)(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.run(context.WithoutCancel(cmd.Context()), &f, args[0], argv)
			if err == errSIGINT {
				supervise.Interrupt()
			}
			return err
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

// runFlags say how "run" takes the lock, and what it does with it.
type runFlags struct {
	where
	wait, once                     span
	noWait                         bool
	conflict                       int
	shell                          string
	lease, minHold, maxHold, guard span
	grace                          span
	replicas, limit                int
	shared                         bool
	label                          string
	printHolder, verbose           bool
	flags                          *pflag.FlagSet
}

// span is a duration, in Go's words or as a number of seconds, which flock(1) takes.
type span time.Duration

// String is "0" for a flag that shows no default: the text says what is so without it.
func (s *span) String() string {
	if *s == 0 {
		return "0"
	}
	return time.Duration(*s).String()
}

func (s *span) Type() string { return "duration" }

func (s *span) Set(text string) error {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		text = strconv.FormatFloat(seconds, 'f', -1, 64) + "s"
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return errors.New("a duration is a number of seconds, or like 1m30s")
	case d < 0:
		return errors.New("a duration must not be negative")
	}
	*s = span(d)
	return nil
}

func (f *runFlags) bind(flags *pflag.FlagSet) {
	f.flags = flags
	f.where.bind(flags)
	flags.BoolVarP(&f.noWait, "no-wait", "n", false,
		"give up at once if another has the lock (also --nonblock, --nb)")
	flags.VarP(&f.wait, "wait", "w", "give up when the wait has taken this `duration` (seconds, or 1m30s); "+
		"0 is --no-wait. Default: no limit")
	flags.Var(&f.once, "once", "run at most once per this `duration` in all the fleet, without waiting: "+
		"what is not this one's turn ends with 0, or with -E")
	flags.IntVar(&f.limit, "limit", 0, "have the lock beside others that give a limit, at most this `number` in all")
	flags.BoolVarP(&f.shared, "shared", "s", false, "have the lock beside all others that share it")
	flags.IntVarP(&f.conflict, "conflict-exit-code", "E", runConflict, "exit `code` when the lock was not had")
	flags.StringVarP(&f.shell, "command", "c", "",
		"run this `text` by the shell ($SHELL, else /bin/sh) in place of a command")
	flags.Var(&f.lease, "lease",
		"`duration` for which the lock outlives a holder that dies (default 30s); it is renewed")
	f.grace = span(5 * time.Second)
	flags.Var(&f.grace, "grace",
		"`duration` between SIGTERM and SIGKILL when the lock is lost; 0: SIGKILL at once")
	flags.Var(&f.maxHold, "max-hold", "end the command after this `duration`, with SIGTERM and SIGKILL")
	flags.Var(&f.minHold, "min-hold",
		"keep the lock from others for this `duration` at least, also when the command ends earlier")
	flags.IntVar(&f.replicas, "replicas", 0, "this `number` of replicas must have the lock too")
	flags.Var(&f.guard, "guard",
		"grant nothing for this `duration` after a server lost its memory; longer than the lease")
	flags.StringVar(&f.label, "label", "", "`text` that shows with the holder")
	flags.BoolVar(&f.printHolder, "print-holder", false,
		"say who has the lock when it was not had; on a terminal that is the default")
	flags.BoolVarP(&f.verbose, "verbose", "v", false,
		"say how long the wait was, who has the lock, and when the server cannot be reached")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "nonblock" || name == "nb" {
			name = "no-wait"
		}
		return pflag.NormalizedName(name)
	})
}

// check wants flags that go together.
func (f *runFlags) check(json bool) error {
	given := f.flags.Changed
	switch {
	case json:
		return errors.New("--json: standard output belongs to the command")
	case f.conflict < 0 || f.conflict > 255:
		return fmt.Errorf("--conflict-exit-code must be from 0 to 255, not %d", f.conflict)
	case given("once") && f.once == 0:
		return errors.New("--once must be positive")
	case f.once > 0 && (f.noWait || given("wait")):
		return errors.New("--once does not wait: leave out --wait and --no-wait")
	case f.once > 0 && (given("lease") || given("min-hold")):
		return errors.New("--once sets the lease, and how long the lock is kept: leave out --lease and --min-hold")
	case f.shared && given("limit"), f.once > 0 && (f.shared || given("limit")):
		return errors.New("--limit, --shared and --once exclude each other")
	case f.noWait && f.wait > 0:
		return errors.New("--wait and --no-wait exclude each other")
	}
	f.noWait = f.noWait || given("wait") && f.wait == 0
	return nil
}

func (f *runFlags) config(a *app) client.Config {
	cfg := client.Config{Prefix: f.prefix, NoPrefix: f.prefix == "", Lease: time.Duration(f.lease), Label: f.label,
		MinHold: time.Duration(f.minHold), Replicas: f.replicas, Guard: time.Duration(f.guard),
		MaxWait: time.Duration(f.wait), MaxHold: time.Duration(f.maxHold)}
	if f.maxHold > 0 {
		// The command is killed after the grace, and then the lock is given back: here, or at last there.
		cfg.Grace = time.Duration(f.grace) + time.Second
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	if f.verbose {
		cfg.Logger = slog.New(slog.NewTextHandler(a.stderr, nil))
	}
	return cfg
}

// command is what is to run.
func (f *runFlags) command(a *app, args []string) (*supervise.Command, error) {
	if f.flags.Changed("command") {
		if len(args) > 0 {
			return nil, errors.New("-c takes the whole command as one text: quote it")
		}
		args = supervise.Shell(f.shell)
	}
	if len(args) == 0 {
		return nil, errors.New("the command is missing: holdfast run NAME -- command")
	}
	return &supervise.Command{Args: args, Stdin: a.stdin, Stdout: a.stdout.Writer, Stderr: a.stderr,
		Grace: time.Duration(f.grace), Say: a.say}, nil
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
	if a.interrupted() { // before that
		return exit(exitInterrupted)
	}
	if err := command.Find(); err != nil {
		return j.notStarted(err)
	}
	ctx, j.stop = context.WithCancelCause(ctx)
	defer j.stop(nil)
	quiet := supervise.Interruptible(j.signals, j.stop)
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
	return j.under(ctx, lock)
}

func (j *job) acquire(ctx context.Context, c *client.Client) (*client.Lock, error) {
	var beside client.Option
	switch {
	case j.flags.shared:
		beside = client.WithShared()
	case j.flags.flags.Changed("limit"):
		beside = client.WithLimit(j.flags.limit)
	}
	if !j.flags.noWait {
		return c.Acquire(ctx, j.name, client.WithOptions(beside))
	}
	// The lock must not end with the time for the question.
	asking, cancel := context.WithTimeout(ctx, j.cfg.timeout)
	defer cancel()
	return c.TryAcquire(asking, j.name, client.WithOptions(client.WithLockContext(ctx), beside))
}

// once is run --once. The lock that client.Once has is re-entered, which shows all of it.
func (j *job) once(ctx context.Context, c *client.Client, quiet func()) error {
	var ended error
	run, err := c.Once(ctx, j.name, time.Duration(j.flags.once), func(ctx context.Context) error {
		quiet()
		lock, err := c.TryAcquire(ctx, j.name)
		if err != nil {
			return err
		}
		ended = j.under(ctx, lock)
		return nil
	})
	var lost *client.LostError
	switch {
	case run.Ran && errors.As(err, &lost):
		code := exit(lostCode(lost))
		if ended != code { // else under has said why
			j.say(text(lost))
		}
		return code
	case err != nil:
		return j.refused(ctx, c, err)
	case run.Ran:
		return ended
	}
	nobody := run.By.Owner == "" // with --guard: it is not another one's turn either
	if nobody || j.tells() {
		j.say(fmt.Sprintf("%s: not this one's turn: %s, for %s more", printable(j.name), holderText(run.By),
			short(run.End)))
	}
	if nobody || j.flags.flags.Changed("conflict-exit-code") {
		return exit(j.flags.conflict)
	}
	return exit(exitOK)
}

// under runs the command, and gives the lock back.
func (j *job) under(ctx context.Context, lock *client.Lock) error {
	if j.flags.verbose {
		supervise.Within(func() {
			j.say(fmt.Sprintf("%s: taken after %s, token %d", printable(j.name), short(time.Since(j.began)), lock.Fence()))
		})
	}
	if caught, ok := context.Cause(ctx).(supervise.Interrupted); ok {
		_ = lock.Release(ctx)
		return signalled(caught.Signal)
	}
	j.command.Env = append(os.Environ(), "HOLDFAST_LOCK="+j.name, "HOLDFAST_OWNER="+lock.Owner(),
		"HOLDFAST_FENCE="+strconv.FormatInt(lock.Fence(), 10), "HOLDFAST_SLOT="+strconv.Itoa(lock.Slot()))
	result, err := j.command.Run(lock, j.signals)
	// A server that is silent must not hold up who waits for the command. With --once the lock is given back
	// after this.
	time.AfterFunc(j.cfg.nodeTimeout(), func() { j.stop(nil) })
	released := lock.Release(ctx)
	switch {
	case err != nil:
		return j.notStarted(err)
	case result.Lost != nil:
		return exit(lostCode(result.Lost))
	case errors.Is(released, client.ErrLost):
		j.say(text(released))
		return exit(lostCode(released))
	case released != nil:
		j.say(text(released) + " (the others wait until the lease ends)")
	}
	if result.SIGINT {
		return errSIGINT
	}
	return exit(result.Code)
}

// errSIGINT is the end of a wait, or of a command, by SIGINT.
var errSIGINT = fmt.Errorf("by SIGINT: %w", exit(exitInterrupted))

// signalled is the end of a wait by a signal.
func signalled(s os.Signal) error {
	if s == os.Interrupt {
		return errSIGINT
	}
	return exit(supervise.Code(s))
}

// notStarted is a command that cannot be run.
func (j *job) notStarted(err error) error {
	j.say(err.Error())
	return exit(supervise.StartCode(err))
}

// refused is a lock that was not had. c is nil if there is no connection.
func (j *job) refused(ctx context.Context, c *client.Client, err error) error {
	if caught, ok := context.Cause(ctx).(supervise.Interrupted); ok {
		return signalled(caught.Signal)
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
	j.say(text(j.advise(err, "client")))
	return exit(runCode(err))
}

// tells reports whether to say who has the lock. flock(1) does not.
func (j *job) tells() bool {
	return j.flags.printHolder || j.flags.verbose || terminal.Is(j.stderr)
}

// text is an error behind the command's name.
func text(err error) string { return strings.TrimPrefix(err.Error(), "holdfast: ") }

// say prints a line about what happens.
func (a *app) say(line string) { fmt.Fprintf(a.stderr, "holdfast run: %s\n", line) }

// open connects to the server.
func (j *job) open(ctx context.Context) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, j.cfg.timeout)
	defer cancel()
	return j.lockClient(ctx, j.flags.quorum, j.flags.config(j.app))
}

const lookWithin = 2 * time.Second

// holder says who has the lock. The server knows since when; the error has an answer too.
func (j *job) holder(ctx context.Context, c *client.Client, err error) string {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	if info, failed := c.Inspect(ctx, j.name); failed == nil && info.Held {
		who := holderText(info.Holder)
		if info.Holder.Owner == "" {
			who = fmt.Sprintf("%d have it (%s)", info.Holds, info.Why)
		}
		return fmt.Sprintf("%s: %s, %d waiting", printable(j.name), who, info.Waiters)
	}
	return text(err)
}

func holderText(h client.Holder) string {
	if h.Owner == "" {
		return "nobody gets it yet"
	}
	text := h.String() + " has it"
	if !h.Since.IsZero() {
		text += fmt.Sprintf(" since %s (%s)", h.Since.UTC().Format(time.DateTime+" UTC"), short(time.Since(h.Since)))
	}
	return text
}

// The exit codes of "run" that are not the command's own. As those of flock(1) they are sysexits.h's;
// runTooLong is timeout(1)'s.
const (
	runConflict    = 1
	runUsage       = 64
	runUnreachable = 69
	runInternal    = 70
	runLost        = 75
	runDenied      = 77
	runConfig      = 78
	runTooLong     = 124
)

const runExitCodes = `Exit codes:
  the command's own; 128 + n if signal n ended it, or ended the wait for the lock
  1    the lock was not had: --no-wait, or the end of --wait. -E chooses another. --once: 0, or what -E
       says, when another one has the interval; 1, or that, when nobody gets it yet (--guard)
  64   wrong usage
  69   the server cannot be reached; the command was not started
  70   another error; the command was not started
  75   the lock was lost, or the server was silent until its lease was almost over: the command was ended
  77   the server refuses the user; the command was not started
  78   the library is missing or too old, the key is no lock, or the sentinels do not know the name; the command was
       not started
  124  --max-hold: the command was ended
  126  the command cannot be run
  127  the command was not found
`

// runCode is the exit code of an error before the command was started.
func runCode(err error) int {
	var reply *rueidis.RedisError
	switch {
	case errors.Is(err, client.ErrArgument):
		return runUsage
	case errors.Is(err, client.ErrDenied):
		return runDenied
	case errors.Is(err, client.ErrInvalid), errors.Is(err, errSentinel), strings.Contains(err.Error(), noMaster):
		return runConfig
	case errors.Is(err, client.ErrUnreachable):
		return runUnreachable
	case errors.As(err, &reply) && slices.Contains([]string{"WRONGPASS", "NOAUTH", "NOPERM"}, strings.SplitN(reply.Error(), " ", 2)[0]):
		return runDenied
	case errors.Is(err, errConnecting):
		return runUnreachable
	}
	return runInternal
}

// lostCode is the exit code when the command was ended, or ended after the lock was lost.
func lostCode(why error) int {
	if errors.Is(why, client.ErrMaxHold) {
		return runTooLong
	}
	return runLost
}
