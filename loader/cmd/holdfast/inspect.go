// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

func inspectCommand(a *app) *cobra.Command {
	var w where
	cmd := &cobra.Command{
		Use:     "inspect NAME",
		GroupID: groupLocks,
		Short:   "Show one lock: who has it, since when, and how many wait",
		Long: `Inspect shows how one lock stands: its holder, or all holders by their slots; until when an interval, a minimum or a
value (OnceValue) keeps it; and who lost it by "break", while the key remembers that. It shows no value, and changes
nothing. Its exit code is 0 if somebody has the lock, and 5 if nobody has.

The user needs what "holdfast acl --for operator" prints.`,
		Example: `  holdfast inspect order:42 --addr redis-1:6379
  holdfast inspect order:42 --json`,
		Args:              oneName,
		ValidArgsFunction: a.completeName(&w),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.inspect(cmd.Context(), w, args[0]) },
	}
	w.bind(cmd.Flags())
	return cmd
}

// oneName wants the name of a lock.
func oneName(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usageError{fmt.Errorf("the NAME of a lock is missing")}
	case args[0] == "":
		return usageError{fmt.Errorf("the NAME of a lock must not be empty")}
	case len(args) > 1:
		return unexpected(args[1])
	}
	return nil
}

func (a *app) inspect(ctx context.Context, w where, name string) error {
	return a.see(ctx, w, func(ctx context.Context, view *locks.View) error {
		lock, err := view.Lock(ctx, name)
		if err != nil {
			return err
		}
		code := exitOK
		if !lock.Held {
			code = exitFree
		}
		if a.cfg.json {
			a.printJSON(struct {
				head
				locks.Lock
			}{a.head(code), lock})
		} else {
			a.printLock(view, lock)
		}
		return exit(code)
	})
}

func (a *app) printLock(view *locks.View, l locks.Lock) {
	paint := terminal.PainterFor(a.stdout)
	table := &terminal.Table{Painter: paint}
	row := func(title, text string, colour terminal.Colour) {
		table.Row(terminal.Cell{Text: title, Colour: terminal.Dim}, terminal.Cell{Text: text, Colour: colour})
	}
	key := printable(view.Key(l.Name))
	if slot, ok := view.Slot(l.Name); ok {
		key += fmt.Sprintf(" (slot %d)", slot)
	}
	row("key", key, terminal.Plain)
	switch {
	case l.Held:
		row("holder", l.String(), terminal.Bold)
		if l.Kind == "" {
			row("owner", strconv.Quote(l.Owner), terminal.Plain)
		}
		for _, h := range l.Holders {
			text := "nobody: it is kept"
			if h.Held {
				text = fmt.Sprintf("%s, owner %q, token %s", h, h.Owner, tokenText(h))
			}
			row(fmt.Sprintf("slot %d", h.Slot), text+", lease "+leaseText(h), terminal.Plain)
		}
		if l.Since != nil {
			row("since", fmt.Sprintf("%s, for %s", clock(*l.Since), short(l.HeldFor())), terminal.Plain)
		}
		row("lease", leaseText(l), terminal.Plain)
		row("token", tokenText(l), terminal.Plain)
		if l.Holds > 1 && l.Kind == "" {
			row("holds", strconv.Itoa(l.Holds), terminal.Plain)
		}
	case l.HasValue:
		row("holder", "nobody: kept with a value, which "+l.String()+" made", terminal.Yellow)
	case l.Kept():
		row("holder", "nobody: the lock is kept, for "+l.String(), terminal.Yellow)
	case l.Waiters > 0:
		row("holder", "nobody: the lease has ended, and the next call of anybody serves the line", terminal.Yellow)
	default:
		row("holder", "nobody: the lock is free", terminal.Green)
	}
	if l.KeptUntil != nil {
		why := map[bool]string{true: "a value that is not shown", false: "an interval or a minimum"}[l.HasValue]
		row("kept until", clock(*l.KeptUntil)+": "+why, terminal.Plain)
	}
	row("waiters", strconv.Itoa(l.Waiters), terminal.Plain)
	if b := l.Broken; b != nil {
		row("broken", fmt.Sprintf("taken from %s (token %d): %s", b, b.Token, printable(b.Reason)), terminal.Yellow)
	}
	table.Print(a.stdout)
}
