// SPDX-License-Identifier: Apache-2.0

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

// breaking is what a break is asked for.
type breaking struct {
	where
	name, reason, owner string
	forget, yes         bool
}

func breakCommand(a *app) *cobra.Command {
	var b breaking
	cmd := &cobra.Command{
		Use:     "break NAME --reason TEXT",
		GroupID: groupLocks,
		Short:   "Take a lock from its holder, and give it to the next in line",
		Long: `Break takes a lock from its holder. The next in line gets it at once. The holder is told, with the reason; but its
work may still be running when the next holder starts. Only a resource that checks fencing tokens is safe from that.
The key remembers who lost the lock and why: until the end of that lease, but for 10 s at least and 10 min at most.

It asks first, unless --yes is given. It takes the lock from the owner that it has seen and from nobody else: if
the lock changes hands before the answer, nothing is broken. After a failure with an unknown outcome run it again with
--owner: without it, the second break would hit the next holder.

If several have the lock, it takes it from all that have it then, and with --owner from one of them.

A lock can be kept though nobody has it: so that a job does not run twice in an interval, or with a value (OnceValue).
To break it lets the job run again, or drops the value: so it wants the lock's name for an answer, not a "y". Processes
that have the value go on with it until it ends.

The user needs what "holdfast acl --for operator" prints.`,
		Example: `  holdfast break order:42 --reason "host web-3 is gone, see INC-1234" --addr redis-1:6379
  holdfast break order:42 --reason "deploy" --yes --json
  holdfast break order:42 --forget    # nobody has it, and the SET NX of others is refused: a record is left`,
		Args:              oneName,
		ValidArgsFunction: a.completeName(&b.where),
		RunE: func(cmd *cobra.Command, args []string) error {
			b.name = args[0]
			if cmd.Flags().Changed("owner") && b.owner == "" { // of a script, perhaps, whose variable is empty
				return usageError{errors.New("--owner must not be empty: without it, whoever has the lock loses it")}
			}
			if err := b.validate(); err != nil {
				return usageError{err}
			}
			if !b.yes && (!terminal.Is(a.stdin) || a.cfg.json) {
				return usageError{errors.New("nobody can be asked without a terminal, or with --json: add --yes")}
			}
			return a.breakLock(cmd.Context(), b)
		},
	}
	b.bind(cmd.Flags())
	cmd.Flags().StringVar(&b.reason, "reason", "", "`text` for the holder that loses the lock")
	cmd.Flags().StringVar(&b.owner, "owner", "", "only from this `owner`, as inspect shows it")
	cmd.Flags().BoolVar(&b.forget, "forget", false, "keep no record of this break, and drop that of an older one")
	cmd.Flags().BoolVarP(&b.yes, "yes", "y", false, "do not ask")
	return cmd
}

func (b breaking) validate() error {
	switch given := strings.TrimSpace(b.reason) != ""; {
	case given && b.forget:
		return errors.New("--forget keeps no --reason: give one of them")
	case !given && !b.forget:
		return errors.New("--reason is missing: the holder is told, and it stands in its log")
	}
	return nil
}

func (a *app) breakLock(ctx context.Context, b breaking) error {
	return a.see(ctx, b.where, func(looking context.Context, view *locks.View) error {
		all, err := view.Lock(looking, b.name)
		if err != nil {
			return err
		}
		seen, found := all.Of(b.owner)
		switch there := seen.Held || seen.Kept() || b.forget && seen.Broken != nil; {
		case !there || !found:
			return a.printBroken(all, b, locks.Broken{Next: &all})
		case !b.yes:
			if err := a.confirm(ctx, view, seen); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, a.cfg.timeout) // from the answer on
		defer cancel()
		broken, err := view.Break(ctx, seen, b.reason, b.forget)
		if err != nil {
			return err
		}
		return a.printBroken(seen, b, broken)
	})
}

// confirm shows who would lose the lock, and asks. Where an interval would end early, a letter that
// fingers know is not answer enough.
func (a *app) confirm(ctx context.Context, view *locks.View, l locks.Lock) error {
	a.printLock(view, l)
	text, agrees := question(l)
	fmt.Fprint(a.stderr, text)
	answer, err := a.answer(ctx)
	if err != nil {
		return err
	}
	if !agrees(answer) {
		fmt.Fprintln(a.stderr, "holdfast break: nothing was broken")
		return exit(exitRefused)
	}
	return nil
}

// question is what is asked before a lock is broken, and says which answers are a yes.
func question(l locks.Lock) (text string, agrees func(answer string) bool) {
	letter := func(answer string) bool {
		answer = strings.TrimSpace(answer)
		return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")
	}
	name := func(answer string) bool { return answer == l.Name } // "job" and "JOB " are others
	switch {
	case l.Held && l.KeptUntil != nil:
		return fmt.Sprintf("Take %s from %s? Its work may still be running, and the lock is not kept until %s then:\n"+
			"a job may run again before that. To do so, type the name of the lock: ",
			printable(l.Name), l, clock(*l.KeptUntil)), name
	case l.Held:
		return fmt.Sprintf("Take %s from %s? Its work may still be running. [y/N] ", printable(l.Name), l), letter
	case l.HasValue:
		return fmt.Sprintf("A value is kept at %s until %s. Processes that have it go on with it.\n"+
			"To drop it, so that the next one makes another, type the name of the lock: ", printable(l.Name), clock(*l.KeptUntil)), name
	case l.Kept():
		return fmt.Sprintf("Nobody works under %s. It is kept, so that a job does not run again before %s.\n"+
			"To let that run again, type the name of the lock: ", printable(l.Name), clock(*l.KeptUntil)), name
	}
	return fmt.Sprintf("Forget that %s was taken from %s? [y/N] ", printable(l.Name), l.Broken), letter
}

// answer reads a line, for as long as nobody interrupts: that is no error to print.
func (a *app) answer(ctx context.Context) (string, error) {
	text, err := within(ctx, func() (string, error) { return bufio.NewReader(a.stdin).ReadString('\n') })
	if err != nil {
		fmt.Fprintln(a.stderr)
	}
	if errors.Is(err, io.EOF) {
		return "", nil // no answer is no
	}
	return strings.TrimRight(text, "\r\n"), err
}

// printBroken says what was done, and returns the exit code.
func (a *app) printBroken(seen locks.Lock, asked breaking, b locks.Broken) error {
	text, code := outcome(seen, b)
	switch {
	case a.cfg.json:
		a.printJSON(struct {
			head
			Name string      `json:"name"`
			Lost *locks.Lock `json:"lost"` // null: nobody had it, or another owner than was to lose it
			Next *locks.Lock `json:"next"` // how it stood right after that; null: nobody knows
		}{a.head(code), asked.name, b.Lost, b.Next})
	case code == exitRefused:
		fmt.Fprintf(a.stderr, "holdfast break: %s\n", text)
	default:
		fmt.Fprintln(a.stdout, text)
	}
	return exit(code)
}

// outcome says what a break did, and how the lock stands now. The code is another one if nobody had the
// lock, or if somebody else has it by now.
func outcome(seen locks.Lock, b locks.Broken) (text string, code int) {
	name := printable(seen.Name)
	switch next := b.Next; {
	case b.Lost == nil && next != nil && (next.Held || next.Kept()):
		return fmt.Sprintf("%s has changed hands, and nothing was broken: it is %s now", name, next), exitRefused
	case b.Lost == nil:
		return name + ": nobody had it, and nothing was broken", exitFree
	case seen.Held:
		text = fmt.Sprintf("%s: taken from %s (token %s)\n", name, seen, tokenText(seen))
	case seen.HasValue:
		text = name + ": its value is dropped\n"
	case seen.Kept():
		text = name + ": not kept any more\n"
	default:
		text = name + ": the break is forgotten\n"
	}
	switch next := b.Next; {
	case next == nil:
		return text + "who has it now is unknown", exitOK
	case next.Held:
		return text + fmt.Sprintf("it is held by %s now (token %s), %d wait", next, tokenText(*next), next.Waiters), exitOK
	default:
		return text + fmt.Sprintf("nobody has it now, %d wait", next.Waiters), exitOK
	}
}
