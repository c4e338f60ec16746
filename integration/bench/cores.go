package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/integration/server"
)

// Servers have a machine of their own where it matters, so here they have a core of their own: the
// first one that this program may use. Clients have the others. When both share all cores, each
// wake-up of a goroutine may cost the server its core for a moment, and what is measured is how
// often a library's client does that.
const (
	coresApart  = "apart"
	coresShared = "shared"
)

// The roles of a process.
const (
	clientsRole = "clients"
	serversRole = "servers"
)

// coresEnv tells this program, run again, that it is where it should be.
const coresEnv = "HOLDFAST_BENCH_CORES"

// settle moves this process to the cores of a role; children come along. It returns what came of
// it: apart, or shared if that was asked for or cannot be had here.
func settle(wanted, role string) (string, error) {
	switch {
	case wanted != coresApart && wanted != coresShared:
		return "", fmt.Errorf("-cores %s: must be %s or %s", wanted, coresApart, coresShared)
	case wanted == coresShared:
		return coresShared, nil
	}
	place := os.Getenv(coresEnv) // role and first core, of this process or its parent
	if now, _, _ := strings.Cut(place, ":"); now == role {
		return coresApart, nil
	}
	err := move(role, place) // returns only if it cannot be done
	fmt.Fprintln(os.Stderr, "bench: servers and clients share all cores:", err)
	return coresShared, nil
}

// house moves the servers of a deployment to their core.
func house(ctx context.Context, d *server.Deployment) error {
	_, first, apart := strings.Cut(os.Getenv(coresEnv), ":")
	if !apart {
		return nil
	}
	core, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	for _, n := range d.Nodes() {
		pid, err := strconv.Atoi(n.Info(ctx, "server", "process_id"))
		if err != nil {
			return fmt.Errorf("INFO of %s names no process: %w", n.Addr, err)
		}
		if err := pin(pid, core); err != nil {
			return fmt.Errorf("move %s to core %d (-cores shared does without): %w", n.Addr, core, err)
		}
	}
	return nil
}
