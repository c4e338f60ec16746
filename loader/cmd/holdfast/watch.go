package main

import (
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
		Use:     "watch",
		GroupID: groupLocks,
		Short:   "Show the locks live: holders, hold times, waiters, hand-overs per second",
		Long: `Watch shows the locks on the whole terminal and looks again every second. Each look is an "ls": between two it
pauses for four times as long as the look took, at least. Totals are of all locks; of more than --limit it shows those
with most waiters, then those held longest. Hand-overs are counted by locks whose holder is another one than at the
last look, so there were at least as many.

With --json it prints a line for each look, without a terminal too, until it is interrupted or --count is reached.

The user needs what "holdfast acl --for operator" prints.`,
		Example: `  holdfast watch --addr redis-1:6379
  holdfast watch --waited --every 250ms
  holdfast watch --json --count 10 | jq .hand_overs_per_second`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case every < leastEvery:
				return usageError{errors.New("--every must be at least " + leastEvery.String())}
			case f.Limit < 0 || count < 0:
				return usageError{errors.New("--limit and --count must not be negative; 0 is none")}
			case count > 0 && !a.cfg.json:
				return usageError{errors.New("--count is for --json")}
			case !a.cfg.json && !(terminal.Is(a.stdin) && terminal.Is(a.stdout)):
				return usageError{errors.New("there is no terminal: add --json for a line of each look")}
			}
			return a.watch(cmd.Context(), w, f, every, count)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	w.bind(flags)
	flags.BoolVar(&f.Waited, "waited", false, "only locks with waiters")
	flags.IntVar(&f.Limit, "limit", defaultLimit, "show so `many` locks at most; 0: all")
	flags.DurationVar(&every, "every", defaultEvery, "the `pause` between two looks")
	flags.IntVar(&count, "count", 0, "end after so `many` looks, with --json; 0: never")
	return cmd
}

func (a *app) watch(ctx context.Context, w where, f locks.Filter, every time.Duration, count int) error {
	opening, cancel := context.WithTimeout(ctx, a.cfg.timeout)
	defer cancel()
	view, end, err := a.view(opening, w)
	if err != nil {
		return err
	}
	defer end()
	series := &locks.Series{View: view, Filter: f, Within: a.cfg.timeout}
	if a.cfg.json {
		return a.stream(ctx, series, every, count)
	}
	return screen.Run(ctx, screen.Config{
		Title:        strings.Join(a.cfg.addrs, ","),
		Every:        every,
		Painter:      terminal.PainterFor(a.stdout),
		Look:         series.Look,
		Line:         view.Line,
		LockTitles:   lockTitles,
		WaiterTitles: waiterTitles,
		LockCells:    lockCells,
		WaiterCells:  waiterCells,
	}, a.stdin, a.stdout.Writer)
}

// stream prints a line for each look. To be interrupted is no failure; a last look that did not see
// all is one.
func (a *app) stream(ctx context.Context, series *locks.Series, every time.Duration, count int) error {
	encoder := json.NewEncoder(a.stdout)
	for n := 1; ; n++ {
		begun := time.Now()
		look := series.Look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := encoder.Encode(look); err != nil {
			return err // nobody reads it any more
		}
		if n == count && len(look.Errors) > 0 {
			return exit(exitFailed)
		}
		if n == count {
			return nil
		}
		select {
		case <-time.After(max(every, locks.Rest*time.Since(begun))):
		case <-ctx.Done():
			return nil
		}
	}
}
