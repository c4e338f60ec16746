// Command holdfast brings the Holdfast library onto Redis and Valkey servers: what a deploy
// pipeline runs before the services that use the locks.
//
//	holdfast load --addr redis-1:6379
//
// "holdfast help" says the rest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-go/holdfast/functions"
)

// The exit codes. They are part of the command's interface: usage names them.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitDiffers = 3
	exitRefused = 4
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the command without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return exitOK
	case "load", "verify", "version", "unload":
	default:
		fmt.Fprintf(stderr, "holdfast: unknown command %q; \"holdfast help\" lists them\n", args[0])
		return exitUsage
	}
	cfg, err := parse(args[0], args[1:])
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "holdfast %s: %v\n\"holdfast help\" lists the flags\n", args[0], err)
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.timeout)
	defer cancel()
	out := &output{cfg: cfg, stdout: stdout, stderr: stderr}
	if cfg.command == "version" && !cfg.json {
		fmt.Fprintf(stdout, "holdfast %s (the library in this command)\n", functions.Version)
	}
	code := work(ctx, cfg, out)
	if cfg.command == "version" && !cfg.addrGiven && len(out.nodes) == 0 {
		code = exitOK // "holdfast version" on a machine without a server is not a failure
	}
	out.finish(code)
	return code
}
