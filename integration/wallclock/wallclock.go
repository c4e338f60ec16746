// Package wallclock builds a wall clock that can be wrong, for a server of integration/server that runs
// with it as its Preload. The node's file File says by how much; without it the clock is right.
package wallclock

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// File is in the server's working directory.
const File = "clock"

//go:embed preload/clock.c
var source string

// Build returns the library. The error says why it cannot be built on this machine: it needs a C
// compiler.
func Build() (library string, err error) {
	compiler := ""
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			compiler = path
			break
		}
	}
	if compiler == "" {
		return "", errors.New("a clock that can be wrong needs a C compiler: neither cc, gcc nor clang is on PATH")
	}
	dir, err := os.MkdirTemp("", "holdfast-clock-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	from, to := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(from, []byte(source), 0o600); err != nil {
		return "", err
	}
	// without the C library, so that it fits the one of the server, whichever it is
	out, err := exec.Command(compiler, "-O2", "-shared", "-fPIC", "-nostdlib", "-o", to, from).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("a clock that can be wrong cannot be built here: %w\n%s", err, out)
	}
	code, err := os.ReadFile(to)
	return string(code), err
}

// Ahead is the text of the file for a clock that is ahead by so much, or behind.
func Ahead(by time.Duration) string { return strconv.FormatInt(by.Milliseconds(), 10) }
