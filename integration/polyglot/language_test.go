// SPDX-License-Identifier: Apache-2.0

package polyglot

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// language is how to run a worker. A probe reports whether this machine has what that takes; packages of
// Debian bring it, which .ci/run installs.
type language struct {
	name     string
	programs []string // the first that the probe likes
	probe    []string // arguments of the program
	worker   string
	args     []string // of the worker, before the rest
	env      []string
	packages string
	compiled bool
}

func languages() []language {
	node := []string{"NODE_PATH=" + os.Getenv("NODE_PATH") + ":/usr/share/nodejs"}
	predis := `require "Predis/Autoloader.php";`
	return []language{
		{name: "sh", programs: []string{"sh"}, probe: []string{"-c", "command -v redis-cli timeout base64"}, worker: "worker.sh",
			packages: "redis-tools"},
		{name: "python", programs: []string{"python3", "/usr/bin/python3"}, probe: []string{"-c", "import redis"},
			worker: "worker.py", packages: "python3-redis"},
		{name: "asyncio", programs: []string{"python3", "/usr/bin/python3"},
			probe:  []string{"-c", "import asyncio, redis.asyncio; asyncio.timeout"},
			worker: "worker_asyncio.py", packages: "python3-redis"},
		{name: "node", programs: []string{"node", "nodejs"}, probe: []string{"-e", `require("redis")`}, worker: "worker.js",
			env: node, packages: "node-redis"},
		{name: "ruby", programs: []string{"ruby", "/usr/bin/ruby"}, probe: []string{"-e", `require "redis"`},
			worker: "worker.rb", packages: "ruby-redis"},
		{name: "phpredis", programs: []string{"php", "/usr/bin/php"},
			probe:  []string{"-r", `exit(extension_loaded("redis") ? 0 : 1);`},
			worker: "worker.php", args: []string{"phpredis"}, packages: "php-cli php-redis"},
		{name: "predis", programs: []string{"php", "/usr/bin/php"}, probe: []string{"-r", predis},
			worker: "worker.php", args: []string{"predis"}, packages: "php-cli php-nrk-predis"},
		{name: "c", programs: []string{"cc", "gcc"},
			probe:  []string{"-include", "hiredis/hiredis.h", "-E", "-x", "c", os.DevNull, "-o", os.DevNull},
			worker: "worker.c", packages: "gcc libc6-dev libhiredis-dev", compiled: true},
	}
}

// worker is a language that is ready to run.
type worker struct {
	name string
	argv []string
	env  []string
}

var errCompile = errors.New("compile")

// ready finds the program, and compiles what must be. The error says why the language cannot be tested.
func (l language) ready() (worker, error) {
	program, err := l.find()
	if err != nil {
		return worker{}, fmt.Errorf("%w; install %s", err, l.packages)
	}
	source := filepath.Join("testdata", l.worker)
	if !l.compiled {
		return worker{l.name, append([]string{program, source}, l.args...), l.env}, nil
	}
	binary := filepath.Join(bed.dir, "worker")
	if out, err := exec.Command(program, "-Wall", "-Wextra", "-Werror", "-O", "-o", binary,
		source, filepath.Join("c", "holdfast.c"), "-lhiredis").CombinedOutput(); err != nil {
		return worker{}, fmt.Errorf("%w %s: %w\n%s", errCompile, source, err, out)
	}
	return worker{l.name, []string{binary}, l.env}, nil
}

func (l language) find() (program string, err error) {
	for _, p := range l.programs {
		cmd := exec.Command(p, l.probe...)
		cmd.Env = append(os.Environ(), l.env...)
		out, e := cmd.CombinedOutput()
		if e == nil {
			return p, nil
		}
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		err = fmt.Errorf("%s is not ready: %w %s", p, e, line)
	}
	return "", err
}

// ready are the languages that can be tested here. It says why the others cannot. A worker that does
// not compile is no reason.
var ready = sync.OnceValues(func() (all []worker, err error) {
	for _, l := range languages() {
		w, err := l.ready()
		if errors.Is(err, errCompile) {
			return nil, err
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "polyglot: %s is skipped: %v\n", l.name, err)
			continue
		}
		all = append(all, w)
	}
	return all, nil
})

// workers returns the languages that can be tested here.
func workers(t *testing.T) []worker {
	t.Helper()
	all, err := ready()
	require.NoError(t, err)
	if len(all) == 0 {
		t.Skip("no language can be tested here, for the reasons above")
	}
	return all
}
