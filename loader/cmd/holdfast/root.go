// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

// app is what all sub-commands share: what was typed before them, and where they read and write.
type app struct {
	cfg    config
	stdin  io.Reader
	stdout *terminal.Output
	stderr io.Writer

	interrupted func() bool
	told        *int // the exit code that JSON has told
}

const (
	groupDeploy = "deploy"
	groupLocks  = "locks"
)

// newRoot makes the tree of commands. A new one is a file with a function here.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Load the Holdfast library, see and break locks, and run commands under them",
		Long: "holdfast loads the Holdfast library (Redis Functions) onto every primary of a deployment, shows and\n" +
			"breaks the locks there, and runs commands under them.",
		Example: `  HOLDFAST_PASSWORD=... holdfast load --addr redis-1:6379,redis-2:6379 --user deployer --tls
  HOLDFAST_ADDR=rediss://deployer:...@redis-1:6379 holdfast load
  holdfast load --addr sentinel-1:26379,sentinel-2:26379 --sentinel-master mymaster`,
		// of typing errors: "laod" is near to "load"
		SuggestionsMinimumDistance: 2,

		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asked, _ := cmd.Flags().GetBool("version"); asked {
				a.clientVersion()
				return nil
			}
			cmd.SetOut(a.stderr)
			_ = cmd.Help()
			return exit(exitUsage)
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.complete(cmd) },
	}
	root.AddGroup(&cobra.Group{ID: groupDeploy, Title: "The library:"},
		&cobra.Group{ID: groupLocks, Title: "The locks:"})
	root.AddCommand(loadCommand(a), verifyCommand(a), doctorCommand(a), versionCommand(a), unloadCommand(a),
		aclCommand(a), listCommand(a), inspectCommand(a), queueCommand(a), breakCommand(a), watchCommand(a), uiCommand(a),
		exporterCommand(a), runCommand(a), benchCommand(a))
	for _, cmd := range root.Commands() {
		cmd.Flags().SortFlags = false
	}
	root.Flags().Bool("version", false, "print the version of this command and of its libraries")
	a.cfg.bind(root.PersistentFlags())
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{explainFlag(err)} })
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Short, help.Long, help.Args = "Say what a command does", "", knownTopic // cobra would help with the rest
	}
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Args = knownCommand // cobra shows its help, as if nothing were wrong
		completion.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	root.SetUsageTemplate(usageTemplate)
	root.SetHelpTemplate(`{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{.UsageString}}`)
	cobra.AddTemplateFunc("about", about)
	cobra.AddTemplateFunc("ownFlags", ownFlags)
	cobra.AddTemplateFunc("commonFlags", commonFlags)
	return root
}

// knownCommand refuses what is no command. What could be an address is not repeated, because it may
// have a password.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if strings.Contains(args[0], "@") {
		return usageError{errors.New("unknown command: an address is given by --addr")}
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		text += fmt.Sprintf("; did you mean %q?", strings.Join(like, `" or "`))
	}
	return usageError{errors.New(text)}
}

// atMost refuses what is not a flag, behind so many arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > n {
			return unexpected(args[n])
		}
		return nil
	}
}

func unexpected(arg string) error {
	if strings.Contains(arg, "@") { // not repeated: it may have a password
		return usageError{errors.New("unexpected argument: an address is given by --addr")}
	}
	return usageError{fmt.Errorf("unexpected argument %q", arg)}
}

// complete reads what the flags name, before the command runs. What asks no server needs none of it.
func (a *app) complete(cmd *cobra.Command) error {
	if alone, _ := cmd.Flags().GetBool("client"); alone || !cmd.HasParent() {
		return nil
	}
	for c := cmd; c.HasParent(); c = c.Parent() {
		if c.Name() == "completion" || c.Name() == "help" || strings.HasPrefix(c.Name(), "__complete") {
			return nil
		}
	}
	a.cfg.command = cmd.Name()
	if err := a.cfg.complete(); err != nil {
		return usageError{err}
	}
	return nil
}

// explainFlag must not repeat what was typed: after an unknown --password flag that may be one, and
// so may be the letters behind an unknown short one.
func explainFlag(err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		return fmt.Errorf("unknown flag -%s: flags have two dashes here", letters[:1])
	}
	if strings.HasSuffix(unknown.GetSpecifiedName(), "password") {
		return errors.New("passwords are not given as flags, because flags can be seen by others: " +
			"set HOLDFAST_PASSWORD or --password-file (at sentinels HOLDFAST_SENTINEL_PASSWORD or " +
			"--sentinel-password-file)")
	}
	return err
}
