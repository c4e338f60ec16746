package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// available is what this machine can start, found once per process.
var available = sync.OnceValues(func() ([]Flavour, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	switch forced := Runtime(os.Getenv("HOLDFAST_RUNTIME")); forced {
	case Local:
		return locals(ctx)
	case Container:
		return containers(ctx, true)
	case "":
		if os.Getenv("HOLDFAST_IMAGES") != "" {
			return containers(ctx, true)
		}
	default:
		return nil, fmt.Errorf("HOLDFAST_RUNTIME is %q, not %q or %q", forced, Container, Local)
	}
	found, err := containers(ctx, false)
	if err == nil {
		return found, nil
	}
	say("no containers: %v", err)
	return locals(ctx)
})

// locals returns the servers that run as local processes, of which one is
// installed if there is none.
func locals(ctx context.Context) ([]Flavour, error) {
	found, _, err := binaries(ctx)
	if len(found) > 0 || err != nil {
		return found, err
	}
	unlock, err := lockMachine()
	if err != nil {
		return nil, err
	}
	defer unlock()
	found, reasons, err := binaries(ctx)
	if len(found) > 0 || err != nil {
		return found, err // another process has installed one
	}
	say("no local server: %s", strings.Join(reasons, "; "))
	if err := install(ctx); err != nil {
		return nil, err
	}
	if found, reasons, err = binaries(ctx); len(found) == 0 && err == nil {
		err = errors.New("no server could be installed: " + strings.Join(reasons, "; "))
	}
	return found, err
}

// Flavours returns the servers that this machine can start, after it pulled,
// built or installed what it had to; the first one is the default.
func Flavours() ([]Flavour, error) {
	found, err := available()
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	return slices.Clone(found), nil
}

// Default returns the server that is used where none is asked for, HOLDFAST_REDIS
// aside.
func Default() (Flavour, error) {
	found, err := Flavours()
	if err != nil {
		return Flavour{}, err
	}
	return found[0], nil
}

// Matrix returns the servers to run a test on: all that this machine can
// start, or the one at HOLDFAST_REDIS alone.
func Matrix(tb testing.TB) []Flavour {
	tb.Helper()
	if externalURL() != "" {
		return []Flavour{{Runtime: External}}
	}
	found, err := Flavours()
	if err != nil {
		tb.Fatal(err)
	}
	return found
}

// Each runs a subtest for every server of the Matrix.
func Each(t *testing.T, test func(t *testing.T, f Flavour)) {
	t.Helper()
	for _, f := range Matrix(t) {
		t.Run(f.name(), func(t *testing.T) { test(t, f) })
	}
}

// choose settles the flavour of a Spec.
func choose(ctx context.Context, spec *Spec) error {
	wantsExternal := externalURL() != "" && spec.Flavour.Runtime == "" || spec.Flavour.Runtime == External
	if wantsExternal {
		reason := spec.owns()
		if reason == "" {
			spec.Flavour = Flavour{Runtime: External}
			return nil
		}
		sayOnce("HOLDFAST_REDIS is not used: " + reason)
		spec.Flavour = Flavour{}
	}
	if spec.Flavour.Runtime == "" {
		f, err := available()
		if err != nil {
			return err
		}
		spec.Flavour = f[0]
	}
	if spec.Flavour.Runtime == Container {
		if err := reachable(ctx, spec); err != nil {
			return err
		}
	}
	sayOnce(spec.Flavour.String())
	return nil
}

// say writes a line about the choice of the server to standard error.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "server: "+format+"\n", args...)
}

var said sync.Map

// sayOnce says a line that this process has not said yet.
func sayOnce(line string) {
	if _, again := said.LoadOrStore(line, true); !again {
		say("%s", line)
	}
}
