// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

const defaultLimit = 1000

func listCommand(a *app) *cobra.Command {
	var w where
	var f locks.Filter
	cmd := &cobra.Command{
		Use:     "ls [PATTERN]",
		Aliases: []string{"list"},
		GroupID: groupLocks,
		Short:   "List the locks, who has them and how many wait",
		Long: `Ls lists the locks under the prefix: who has each, for how long, what is left of the lease, the fencing token, and
how many wait. A lock that nobody has can be kept until the end of an interval, or with a value. A PATTERN is as that of
SCAN: quote it for the shell. Ls looks by SCAN in batches on every primary, which blocks no server for long, but goes
through all keys of the database; a lock that is taken or released meanwhile may be missing. Of more locks than --limit
it lists the first ones of --sort, or those with most waiters, and counts all.

The user needs what "holdfast acl --for operator" prints.`,
		Example: `  holdfast ls --addr redis-1:6379
  holdfast ls 'order:*' --sort age --older-than 5m
  holdfast ls --waited --holder web-42
  holdfast ls --prefix '{shop}:lock:' --older-than 1m --json | jq -r '.locks[].name'`,
		Args:              atMost(1),
		ValidArgsFunction: a.completeName(&w),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := choose(&f, args); err != nil {
				return err
			}
			return a.list(cmd.Context(), w, f)
		},
	}
	flags := cmd.Flags()
	w.bind(flags)
	bindFilter(cmd, &f)
	return cmd
}

// bindFilter defines the flags that say which locks are shown, and in which order.
func bindFilter(cmd *cobra.Command, f *locks.Filter) {
	flags := cmd.Flags()
	flags.BoolVar(&f.Held, "held", false, "only locks that are held, not those whose lease has ended")
	flags.BoolVar(&f.Waited, "waited", false, "only locks with waiters")
	flags.StringVar(&f.Holder, "holder", "", "only locks whose holder has this `text` in its host, process, label or owner string")
	flags.DurationVar(&f.OlderThan, "older-than", 0, "only locks that are held for longer than this `duration`")
	flags.StringVar((*string)(&f.Order), "sort", "", "`order`: by most waiters, longest age, or name (default: name; of watch, waiters)")
	flags.IntVar(&f.Limit, "limit", defaultLimit, "that `many` locks at most, the first ones of --sort, without it those with most waiters; 0: all")
	offer(cmd, "sort", locks.Orders...)
}

// choose completes a filter by what was typed, and checks it.
func choose(f *locks.Filter, args []string) error {
	switch {
	case f.Limit < 0:
		return usageError{errors.New("--limit must not be negative; 0 is none")}
	case f.OlderThan < 0:
		return usageError{errors.New("--older-than must not be negative")}
	case f.Order != "" && !slices.Contains(locks.Orders, f.Order):
		return usageError{fmt.Errorf("--sort must be waiters, age or name, not %q", f.Order)}
	case len(args) > 0:
		f.Pattern = args[0]
	}
	return nil
}

func (a *app) list(ctx context.Context, w where, f locks.Filter) error {
	progress := terminal.Watch(a.stderr)
	defer progress.End()
	progress.Say("connecting ...")
	return a.see(ctx, w, func(ctx context.Context, view *locks.View) error {
		list, err := view.List(ctx, f, func(keys int) { progress.Say("%d keys under %q ...", keys, w.prefix) })
		progress.End()
		if err == nil || len(list.Locks) > 0 {
			return a.printList(list, a.advise(err, "operator"))
		}
		return err
	})
}

// printList also says what is missing, and returns the exit code.
func (a *app) printList(list locks.List, err error) error {
	code := exitOK
	if err != nil {
		code = exitFailed
	}
	if a.cfg.json {
		report := struct {
			head
			Locks   []locks.Lock `json:"locks"`
			Total   int          `json:"total"`   // locks, also those that the limit leaves out; of all of these
			Held    int          `json:"held"`    // are held
			Waiting int          `json:"waiting"` // wait
			More    bool         `json:"more"`    // the limit leaves some out
			Skipped int          `json:"skipped"` // keys that are no locks
		}{a.head(code, err), nonNil(list.Locks), list.Total, list.Held, list.Waiting, list.More() > 0, len(list.Foreign)}
		a.printJSON(report)
		return exit(code)
	}
	terminal.TableOf(terminal.PainterFor(a.stdout), lockColumns, list.Locks, lockCells).Print(a.stdout)
	if n := list.More(); n > 0 {
		fmt.Fprintf(a.stderr, "holdfast ls: %d more; of all %d locks %d are held, and %d wait: --limit 0 lists all\n", n, list.Total, list.Held, list.Waiting)
	}
	if n := len(list.Foreign); n > 0 {
		fmt.Fprintf(a.stderr, "holdfast ls: %d keys under the prefix are no locks\n", n)
	}
	if err != nil {
		fmt.Fprintf(a.stderr, "holdfast ls: the list is not complete: %v\n", err)
	}
	return exit(code)
}

// lockColumns are those of lockCells, which watch shows too.
var lockColumns = terminal.Columns{
	Titles: []string{"NAME", "HOLDER", "FOR", "LEASE", "TOKEN", "WAITERS"},
	Worth:  []string{"TOKEN", "LEASE", "FOR", "HOLDER"},
}

func lockCells(l locks.Lock) []terminal.Cell {
	cells := terminal.Cells(printable(l.Name), l.String(), short(l.HeldFor()), leaseText(l), tokenText(l),
		strconv.Itoa(l.Waiters))
	switch {
	case l.Kept():
		cells[1] = terminal.Cell{Text: "nobody: kept until " + clock(*l.KeptUntil), Colour: terminal.Yellow}
	case !l.Held:
		cells[1] = terminal.Cell{Text: "nobody: the lease has ended", Colour: terminal.Yellow}
	}
	if l.Waiters > 0 {
		cells[5].Colour = terminal.Yellow
	}
	return cells
}
