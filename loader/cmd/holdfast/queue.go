// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

const defaultPlaces = 100

func queueCommand(a *app) *cobra.Command {
	var w where
	var limit int
	cmd := &cobra.Command{
		Use:     "queue NAME",
		Aliases: []string{"line"},
		GroupID: groupLocks,
		Short:   "Show who waits for a lock, in order",
		Long: `Queue shows the waiters of a lock in order: who they are, since when they wait (by their own clocks), when they
asked last, and how they will hear that it is their turn. A waiter is "deaf" if nobody is subscribed to its channel at
the lock's primary: if that is so at its turn, it is passed over. The queue is read in pages, so who comes or goes
meanwhile may be missing.

The user needs what "holdfast acl --for operator" prints.`,
		Example: `  holdfast queue order:42 --addr redis-1:6379
  holdfast queue order:42 --limit 0 --json | jq '.line[] | select(.hears == "deaf") | .host'`,
		Args:              oneName,
		ValidArgsFunction: a.completeName(&w),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return usageError{errors.New("--limit must not be negative; 0 is none")}
			}
			return a.line(cmd.Context(), w, args[0], limit)
		},
	}
	w.bind(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", defaultPlaces, "stop after that `many` waiters; 0: show all")
	return cmd
}

func (a *app) line(ctx context.Context, w where, name string, limit int) error {
	return a.see(ctx, w, func(ctx context.Context, view *locks.View) error {
		lock, err := view.Lock(ctx, name)
		if err != nil {
			return err
		}
		line, err := view.Line(ctx, name, limit)
		switch {
		case err != nil:
		case a.cfg.json:
			a.printJSON(struct {
				head
				Lock  locks.Lock     `json:"lock"`
				Total int            `json:"total"`
				Line  []locks.Waiter `json:"line"`
			}{a.head(exitOK), lock, line.Total, nonNil(line.Waiters)})
		default:
			a.printLine(lock, line)
		}
		return err
	})
}

func (a *app) printLine(l locks.Lock, line locks.Line) {
	switch {
	case l.Held:
		fmt.Fprintf(a.stdout, "%s is held by %s for %s, lease %s\n", printable(l.Name), l, short(l.HeldFor()), leaseText(l))
	case l.Kept():
		fmt.Fprintf(a.stdout, "%s is held by nobody, and kept until %s\n", printable(l.Name), clock(*l.KeptUntil))
	case line.Total > 0:
		fmt.Fprintf(a.stdout, "%s: the lease has ended, and the next call of anybody serves the line\n", printable(l.Name))
	default:
		fmt.Fprintf(a.stdout, "%s is free\n", printable(l.Name))
	}
	if len(line.Waiters) == 0 {
		fmt.Fprintln(a.stdout, "nobody waits")
		return
	}
	terminal.TableOf(terminal.PainterFor(a.stdout), waiterColumns, line.Waiters, waiterCells).Print(a.stdout)
	if more := line.Total - len(line.Waiters); more > 0 {
		fmt.Fprintf(a.stdout, "and %d more\n", more)
	}
}

var waiterColumns = terminal.Columns{
	Titles: []string{"PLACE", "WAITER", "WANTS", "WAITS", "ASKED", "LEASE", "HEARS"},
	Worth:  []string{"LEASE", "WANTS", "ASKED", "PLACE", "WAITS"},
}

func waiterCells(w locks.Waiter) []terminal.Cell {
	waits := "?"
	if w.Since != nil {
		waits = short(max(time.Millisecond, time.Since(*w.Since)))
	}
	milliseconds := func(n int64) string { return short(time.Duration(n) * time.Millisecond) }
	cells := terminal.Cells(strconv.Itoa(w.Position), w.String(), w.Wants, waits, milliseconds(max(1, w.AskedMS))+" ago",
		milliseconds(w.LeaseMS), string(w.Hears))
	if w.Hears == locks.Deaf {
		cells[6].Colour = terminal.Red
	}
	return cells
}
