// Command prepare brings the servers that the tests use to this machine (it
// pulls, builds or installs them if it has to) and prints which they are. The
// tests do the same by themselves, but "go test" hides what they print, and a
// test's time limit is no place for a download.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run starts each server once: that it is there does not mean that it works.
// The starts print their names.
func run() error {
	specs := []server.Spec{{}} // the default, or HOLDFAST_REDIS
	flavours, err := server.Flavours()
	if err != nil {
		return err
	}
	for _, f := range flavours {
		specs = append(specs, server.Spec{Flavour: f})
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, spec := range specs {
		d, err := server.Start(ctx, spec)
		if err != nil {
			return err
		}
		if err := d.Close(); err != nil {
			return err
		}
	}
	return nil
}
