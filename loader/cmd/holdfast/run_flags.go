package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/client"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/supervise"
)

// runFlags say how "run" takes the lock, and what it does with it.
type runFlags struct {
	where
	wait, once                     span
	noWait                         bool
	conflict                       int
	shell                          string
	lease, minHold, maxHold, guard span
	grace                          span
	replicas                       int
	label                          string
	printHolder, verbose           bool
	flags                          *pflag.FlagSet
}

// span is a duration, in Go's words or as a number of seconds, which flock(1) takes.
type span time.Duration

func (s *span) String() string { return time.Duration(*s).String() }

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
	flags.SortFlags = false
	flags.BoolVarP(&f.noWait, "no-wait", "n", false,
		"give up at once if another has the lock (also --nonblock, --nb)")
	flags.VarP(&f.wait, "wait", "w", "give up when the wait has taken this `duration` (seconds, or 1m30s); "+
		"0 is --no-wait. Default: no limit")
	flags.Var(&f.once, "once", "run at most once per this `duration` in all the fleet, without waiting: "+
		"what is not this one's turn ends with 0, or with -E")
	flags.IntVarP(&f.conflict, "conflict-exit-code", "E", runConflict, "exit `code` when the lock was not had")
	flags.StringVarP(&f.shell, "command", "c", "",
		"run this `text` by the shell ($SHELL, else /bin/sh) in place of a command")
	flags.Var(&f.lease, "lease",
		"`duration` for which the lock outlives a holder that dies (default 30s); it is renewed")
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
	f.grace = span(5 * time.Second)
	flags.Lookup("grace").DefValue = f.grace.String()
	flags.VisitAll(func(flag *pflag.Flag) {
		if _, is := flag.Value.(*span); is && flag.DefValue == "0s" {
			flag.DefValue = "" // the text says what is so without it
		}
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
		args = shell(f.shell)
	}
	if len(args) == 0 {
		return nil, errors.New("the command is missing: holdfast run NAME -- command")
	}
	return &supervise.Command{Args: args, Stdin: a.stdin, Stdout: a.stdout.Writer, Stderr: a.stderr,
		Grace: time.Duration(f.grace), Say: a.say}, nil
}

func shell(text string) []string {
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/C", text}
	}
	if shell := os.Getenv("SHELL"); shell != "" {
		return []string{shell, "-c", text}
	}
	return []string{"/bin/sh", "-c", text}
}
