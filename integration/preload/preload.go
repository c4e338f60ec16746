// SPDX-License-Identifier: Apache-2.0

// Package preload builds libraries for LD_PRELOAD, which stand in front of the C library of a server of
// integration/server.
package preload

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build returns the library of a C source that needs no more of the C library than syscall() and errno.
// The error says why it cannot be built on this machine: it needs a C compiler. It calls the library by
// its name, which is that of a thing: "a clock that can be wrong".
func Build(name, source string) (library string, err error) {
	compiler := ""
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			compiler = path
			break
		}
	}
	if compiler == "" {
		return "", errors.New(name + " needs a C compiler: neither cc, gcc nor clang is on PATH")
	}
	dir, err := os.MkdirTemp("", "holdfast-preload-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	from, to := filepath.Join(dir, "preload.c"), filepath.Join(dir, "preload.so")
	if err := os.WriteFile(from, []byte(source), 0o600); err != nil {
		return "", err
	}
	// without the C library, so that it fits the one of the server, whichever it is
	out, err := exec.Command(compiler, "-O2", "-shared", "-fPIC", "-nostdlib", "-o", to, from).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s cannot be built here: %w\n%s", name, err, out)
	}
	code, err := os.ReadFile(to)
	return string(code), err
}
