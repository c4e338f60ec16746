// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/images"
)

// available is what this machine can start, found once per process.
var available = sync.OnceValues(func() ([]Flavour, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	switch forced := Runtime(os.Getenv("HOLDFAST_RUNTIME")); {
	case forced == Container, forced == "" && os.Getenv("HOLDFAST_IMAGES") != "":
		return containers(ctx, true)
	case forced == Local:
		return locals(ctx, func() ([]Flavour, error) { return nil, errors.New("HOLDFAST_RUNTIME wants none") })
	case forced == "":
		return locals(ctx, func() ([]Flavour, error) { return containers(ctx, false) })
	default:
		return nil, fmt.Errorf("HOLDFAST_RUNTIME is %q, not %q or %q", forced, Container, Local)
	}
})

// locals returns the servers that run as local processes. If there is none, it returns others, or if
// there is none of them either, one that it installs.
func locals(ctx context.Context, others func() ([]Flavour, error)) ([]Flavour, error) {
	found, reasons, err := binaries(ctx)
	if len(found) > 0 || err != nil {
		return found, err
	}
	say("no local server: %s", strings.Join(reasons, "; "))
	if found, err = others(); err == nil {
		return found, nil
	}
	say("no containers: %v", err)
	unlock, err := lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if found, _, err = binaries(ctx); len(found) > 0 || err != nil {
		return found, err // another process has installed one
	}
	if err := script(ctx, "install-server.sh", images.InstallServer); err != nil {
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
func choose(spec *Spec) error {
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
	sayOnce(spec.Flavour.String())
	return nil
}

// functionsSince is the first version of Redis, and below any of Valkey, that
// has functions.
const functionsSince = 7

var versionPattern = regexp.MustCompile(`v=(\d+)(\.\d+)*`)

// binaries returns the servers of HOLDFAST_SERVERS, or those on PATH. A binary
// that is named must be usable; one that is found is left out if it is not,
// and the reasons are returned.
func binaries(ctx context.Context) (found []Flavour, reasons []string, err error) {
	names, named := []string{"redis-server", "valkey-server"}, false
	if list := os.Getenv("HOLDFAST_SERVERS"); list != "" {
		names, named = strings.Split(list, ","), true
	}
	for _, name := range names {
		f, err := binary(ctx, strings.TrimSpace(name))
		switch {
		case err == nil:
			found = append(found, f)
		case named:
			return nil, nil, fmt.Errorf("HOLDFAST_SERVERS: %w", err)
		default:
			reasons = append(reasons, err.Error())
		}
	}
	return found, reasons, nil
}

// binary looks at one server binary. Which server it is shows in its own
// words: distributions link redis-server to Valkey.
func binary(ctx context.Context, name string) (Flavour, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return Flavour{}, fmt.Errorf("%s is not on PATH", name)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return Flavour{}, fmt.Errorf("%s --version: %w", path, err)
	}
	match := versionPattern.FindStringSubmatch(string(out))
	if match == nil {
		return Flavour{}, fmt.Errorf("%s --version says %q", path, out)
	}
	version := strings.TrimPrefix(match[0], "v=")
	if major, _ := strconv.Atoi(match[1]); major < functionsSince {
		return Flavour{}, fmt.Errorf("%s is %s, without functions: %d.0 has them", path, version, functionsSince)
	}
	product := "redis-server "
	if strings.Contains(strings.ToLower(string(out)), "valkey") {
		product = "valkey-server "
	}
	return Flavour{Runtime: Local, Binary: path, Version: product + version}, nil
}
