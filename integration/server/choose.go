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

	"github.com/holdfast-go/holdfast/integration/server/internal/machine"
)

// available is what this machine can start, found once per process.
var available = sync.OnceValues(func() ([]Flavour, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	switch forced := Runtime(os.Getenv("HOLDFAST_RUNTIME")); forced {
	case Local:
		return Locals(ctx)
	case Container, "":
		if machine.Containers != nil && (forced == Container || os.Getenv("HOLDFAST_IMAGES") != "") {
			return containers(ctx, true)
		}
	default:
		return nil, fmt.Errorf("HOLDFAST_RUNTIME is %q, not %q or %q", forced, Container, Local)
	}
	found, err := containers(ctx, false)
	if err == nil {
		return found, nil
	}
	machine.Say("no containers: %v", err)
	return Locals(ctx)
})

// Locals returns the servers that run as local processes, of which one is
// installed if there is none.
func Locals(ctx context.Context) ([]Flavour, error) {
	found, _, err := binaries(ctx)
	if len(found) > 0 || err != nil {
		return found, err
	}
	unlock, err := machine.Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	found, reasons, err := binaries(ctx)
	if len(found) > 0 || err != nil {
		return found, err // another process has installed one
	}
	machine.Say("no local server: %s", strings.Join(reasons, "; "))
	if err := machine.Install(ctx); err != nil {
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
		t.Run(f.Name(), func(t *testing.T) { test(t, f) })
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
		machine.SayOnce("HOLDFAST_REDIS is not used: " + reason)
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
	machine.SayOnce(spec.Flavour.String())
	return nil
}

// containers returns what the machine can start in containers, if this program can.
func containers(ctx context.Context, mayBuild bool) ([]Flavour, error) {
	if machine.Containers == nil {
		return nil, errors.New("this program does not import integration/server/container")
	}
	return machine.Containers.Flavours(ctx, mayBuild)
}

// reachable gives a deployment whose servers talk to each other a local flavour where containers cannot do
// that.
func reachable(ctx context.Context, spec *Spec) error {
	not, err := machine.Containers.Shared()
	if err != nil || not == "" || spec.Kind == KindSingle || spec.Kind == KindSeveral {
		return err
	}
	found, _, err := binaries(ctx)
	if err != nil {
		return err
	}
	not += fmt.Sprintf(", which a %s deployment needs", spec.Kind)
	if len(found) == 0 {
		return fmt.Errorf("%s, and neither redis-server nor valkey-server is on PATH", not)
	}
	machine.SayOnce(not + ": using local processes for it")
	spec.Flavour = found[0]
	return nil
}
