// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/screen"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

const (
	defaultEvery = time.Second
	leastEvery   = 50 * time.Millisecond
)

func watchCommand(a *app) *cobra.Command {
	var w where
	var f locks.Filter
	var every time.Duration
	var count int
	cmd := &cobra.Command{
		Use:     "watch [PATTERN]",
		GroupID: groupLocks,
		Short:   "Show the locks live: holders, hold times, waiters, hand-overs per second",
		Long: `Watch shows the locks on the whole terminal and looks again every second; "?" lists the keys. Each look is an "ls":
between two it pauses for four times as long as the look took, at least. Totals are of all locks that the PATTERN and
the flags choose; of more than --limit it shows the first ones of the order. Hand-overs are counted by locks whose
holder is another one than at the last look, so there were at least as many. So it is with losses: locks that were
broken, or whose lease ran out before they were given back.

With --json it prints a line for each look, without a terminal too, until it is interrupted or --count is reached.

The user needs what "holdfast acl --for operator" prints.`,
		Example: `  holdfast watch --addr redis-1:6379
  holdfast watch --waited --every 250ms
  holdfast watch --json --count 10 | jq .hand_overs_per_second`,
		Args:              atMost(1),
		ValidArgsFunction: a.completeName(&w),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := choose(&f, args); err != nil {
				return err
			}
			switch {
			case every < leastEvery:
				return usageError{errors.New("--every must be at least " + leastEvery.String())}
			case count < 0:
				return usageError{errors.New("--count must not be negative; 0 is none")}
			case count > 0 && !a.cfg.json:
				return usageError{errors.New("--count is for --json")}
			case !a.cfg.json && !(terminal.Is(a.stdin) && terminal.Is(a.stdout)):
				return usageError{errors.New("there is no terminal: add --json for a line of each look")}
			}
			f.Order = cmp.Or(f.Order, locks.ByWaiters)
			return a.watch(cmd.Context(), w, f, every, count)
		},
	}
	flags := cmd.Flags()
	w.bind(flags)
	bindFilter(cmd, &f)
	flags.DurationVar(&every, "every", defaultEvery, "the `pause` between two looks")
	flags.IntVar(&count, "count", 0, "end after so `many` looks, with --json; 0: never")
	return cmd
}

func (a *app) watch(ctx context.Context, w where, f locks.Filter, every time.Duration, count int) error {
	return a.see(ctx, w, func(_ context.Context, view *locks.View) error {
		series := &locks.Series{View: view, Within: a.cfg.timeout}
		if a.cfg.json {
			return a.stream(ctx, series, f, every, count)
		}
		return screen.Run(ctx, screen.Config{
			Title:         strings.Join(a.cfg.addrs, ","),
			Series:        series,
			Filter:        f,
			Every:         every,
			Painter:       terminal.PainterFor(a.stdout),
			LockColumns:   lockColumns,
			LockCells:     lockCells,
			WaiterColumns: waiterColumns,
			WaiterCells:   waiterCells,
			Question:      question,
			Outcome:       outcome,
		}, a.stdin, a.stdout.Writer)
	})
}

// stream prints a line for each look. To be interrupted is no failure; a last look that did not see
// all is one.
func (a *app) stream(ctx context.Context, series *locks.Series, f locks.Filter, every time.Duration, count int) (err error) {
	encoder := json.NewEncoder(a.stdout)
	n := 0
	series.Run(ctx, f, every, func(look locks.Look) bool {
		if err = encoder.Encode(look); err != nil {
			return false // nobody reads it any more
		}
		n++
		if n == count && len(look.Errors) > 0 {
			err = exit(exitFailed)
		}
		return n != count
	})
	return err
}
