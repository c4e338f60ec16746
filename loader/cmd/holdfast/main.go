// SPDX-License-Identifier: Apache-2.0

// Command holdfast is for those who deploy Holdfast and for those on call: it brings the library
// onto Redis and Valkey servers, and shows and breaks the locks there.
//
//	holdfast load --addr redis-1:6379
//	holdfast ls --addr redis-1:6379 --waited
//
// "holdfast help" says the rest. There is a file for each sub-command; root.go lists them. It is a
// module of its own, so that users of the client get none of its dependencies.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

// The exit codes. They are part of the command's interface: the help names them.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitDiffers = 3
	exitRefused = 4
	exitFree    = 5

	exitInterrupted = 130 // as of a program that SIGINT ended
)

const exitCodes = `Exit codes:
  0  done, or nothing to do
  1  failed, on some node at least, or could not connect
  2  wrong usage
  3  verify: not every node has this library or a newer one. acl --check: rights are missing.
     doctor: something is found. bench: calls failed
  4  refused, and nothing was written. load: there is a library of another contract, or one with our names that is
     not ours. unload: one with our name that is not ours. break: the answer was no, or the lock changed hands before it
  5  nobody has the lock (inspect, break)
  130  interrupted
`

// ownExitCodes is the annotation of a command with other exit codes: the text about them.
const ownExitCodes = "exit codes"

func main() {
	ctx := context.Background()
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(s) { // as a shell has it of what it starts in the background
			ctx, _ = signal.NotifyContext(ctx, s)
		}
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the command without the process around it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &terminal.Output{Writer: stdout}
	a := &app{stdin: stdin, stdout: out, stderr: stderr, interrupted: func() bool { return ctx.Err() != nil }}
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	code := a.exitCode(cmd, err)
	if out.Err != nil && code == exitOK {
		fmt.Fprintf(stderr, "%s: printing: %v\n", cmd.CommandPath(), out.Err)
		return exitFailed
	}
	return code
}

// exitCode is how the command ends. What failed before JSON was printed is told in JSON too.
func (a *app) exitCode(cmd *cobra.Command, err error) int {
	if a.cfg.json && a.told != nil {
		return *a.told
	}
	var said exit
	failed := err != nil && (!errors.As(err, &said) || said == exitFailed)
	own := cmd.Annotations[ownExitCodes] != ""
	var code int
	if failed && !own && a.interrupted() {
		code, err = exitInterrupted, nil // whoever did it knows why
	} else {
		code = exitCode(cmd, err, a.stderr)
	}
	if a.cfg.json && code != exitOK && code != exitUsage && !own && !a.stdout.Written {
		if errors.As(err, &said) {
			err = nil // a code only
		}
		_ = json.NewEncoder(a.stdout).Encode(a.head(code, err)) // in a line, as the looks of watch
	}
	return code
}

// exit is the error of a command that has said all there is to say; exit(exitOK) is none.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is about what was typed, or what a file or variable that it names says.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func exitCode(cmd *cobra.Command, err error, stderr io.Writer) int {
	var said exit
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &said):
		return int(said)
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "%s: %v\n\"%s --help\" lists the flags\n", cmd.CommandPath(), err, cmd.CommandPath())
		if cmd.Annotations[ownExitCodes] != "" {
			return runUsage
		}
		return exitUsage
	}
	fmt.Fprintf(stderr, "%s: %s\n", cmd.CommandPath(), strings.TrimPrefix(err.Error(), "holdfast: "))
	return exitFailed
}
