package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault // the command: files
			}
			return a.completeName(&f.where)(cmd, args, typed)
		},
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
