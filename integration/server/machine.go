// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

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

// lock lets one of the processes of "go test ./..." at a time pull, build and install. The lock is gone
// with the process.
func lock() (unlock func(), err error) {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("holdfast-servers-%d", os.Getuid()))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

// script runs one of the scripts of integration/images; what it prints goes to standard error.
func script(ctx context.Context, name, text string) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", text)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("integration/images/%s: %w", name, err)
	}
	return nil
}
