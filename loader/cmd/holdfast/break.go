package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

func breakCommand(a *app) *cobra.Command {
	var w where
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use:     "break NAME --reason TEXT",
		GroupID: groupLocks,
		Short:   "Take a lock from its holder, and give it to the next in line",
		Long: `Break takes a lock from its holder. The next in line gets it at once. The holder is told, with the reason; but its
work may still be running when the next holder starts. Only a resource that checks fencing tokens is safe from that.

It asks before it does so; --yes does not. If the lock changes hands before the answer, nothing is broken: what you
saw is not what is there any more. After a failure with an unknown outcome look first: a second break would hit the
next holder.

The user needs what "holdfast acl --for operator" prints.`,
		Example: `  holdfast break order:42 --reason "host web-3 is gone, see INC-1234" --addr redis-1:6379
  holdfast break order:42 --reason "deploy" --yes --json`,
		Args:              oneName,
		ValidArgsFunction: a.completeName(&w),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return usageError{errors.New("--reason is missing: the holder is told, and it stands in its log")}
			}
			if !yes && (!terminal.Is(a.stdin) || a.cfg.json) {
				return usageError{errors.New("nobody can be asked without a terminal, or with --json: add --yes")}
			}
			return a.breakLock(cmd.Context(), w, args[0], reason, yes)
		},
	}
	w.bind(cmd.Flags())
	cmd.Flags().StringVar(&reason, "reason", "", "`text` for the holder that loses the lock")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) breakLock(ctx context.Context, w where, name, reason string, yes bool) error {
	within := func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, a.cfg.timeout) }
	opening, opened := within()
	defer opened()
	view, end, err := a.view(opening, w)
	if err != nil {
		return err
	}
	defer end()
	if !yes {
		if err := a.confirm(ctx, view, name); err != nil {
			return err
		}
	}
	ctx, cancel := within() // from the answer on
	defer cancel()
	broken, err := view.Break(ctx, name, reason)
	if err != nil {
		return a.lockError(err)
	}
	a.printBroken(name, broken)
	if broken.Lost == nil {
		return exit(exitFree)
	}
	return nil
}

// confirm shows who would lose the lock, and asks. It looks again after the answer.
func (a *app) confirm(ctx context.Context, view *locks.View, name string) error {
	look := func() (locks.Lock, error) {
		ctx, cancel := context.WithTimeout(ctx, a.cfg.timeout)
		defer cancel()
		l, err := view.Lock(ctx, name)
		return l, a.lockError(err)
	}
	before, err := look()
	if err != nil {
		return err
	}
	a.printLock(view, before)
	if !before.Held {
		return exit(exitFree)
	}
	fmt.Fprintf(a.stderr, "Take %s from %s? Its work may still be running. [y/N] ", printable(name), before)
	answer, err := a.answer(ctx)
	if err != nil {
		return err
	}
	if answer != "y" && answer != "yes" {
		fmt.Fprintln(a.stderr, "holdfast break: nothing was broken")
		return exit(exitRefused)
	}
	now, err := look()
	if err != nil {
		return err
	}
	if now.Owner != before.Owner || now.Token != before.Token {
		fmt.Fprintln(a.stderr, "holdfast break: the lock has changed hands meanwhile, and nothing was broken:")
		a.printLock(view, now)
		return exit(exitRefused)
	}
	return nil
}

// answer reads a line, for as long as nobody interrupts.
func (a *app) answer(ctx context.Context) (string, error) {
	type reading struct {
		text string
		err  error
	}
	done := make(chan reading, 1)
	go func() {
		text, err := bufio.NewReader(a.stdin).ReadString('\n')
		done <- reading{strings.ToLower(strings.TrimSpace(text)), err}
	}()
	select {
	case r := <-done:
		if errors.Is(r.err, io.EOF) { // no answer is no
			fmt.Fprintln(a.stderr)
			return "", nil
		}
		return r.text, r.err
	case <-ctx.Done():
		fmt.Fprintln(a.stderr)
		return "", context.Cause(ctx)
	}
}

func (a *app) printBroken(name string, b locks.Broken) {
	if a.cfg.json {
		report := struct {
			head
			Name string      `json:"name"`
			Lost *locks.Lock `json:"lost"` // null: nobody had it
			Next *locks.Lock `json:"next"` // how it stood right after that; null: nobody knows
		}{a.head(nil), name, b.Lost, b.Next}
		if b.Lost == nil {
			report.ExitCode = exitFree
		}
		a.printJSON(report)
		return
	}
	if b.Lost == nil {
		fmt.Fprintf(a.stdout, "%s: nobody had it, and nothing was broken\n", printable(name))
		return
	}
	fmt.Fprintf(a.stdout, "%s: taken from %s (token %s)\n", printable(name), b.Lost, tokenText(*b.Lost))
	switch {
	case b.Next == nil:
		fmt.Fprintln(a.stderr, "holdfast break: who has it now is unknown")
	case b.Next.Held:
		fmt.Fprintf(a.stdout, "%s has it now (token %s), %d wait\n", b.Next, tokenText(*b.Next), b.Next.Waiters)
	default:
		fmt.Fprintf(a.stdout, "nobody has it now, %d wait\n", b.Next.Waiters)
	}
}
