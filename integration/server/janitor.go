// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// The janitor is a shell that outlives this process by a moment, however that
// ends: its standard input is a pipe whose other end closes then. It kills and
// deletes what stands in its directory: node-*/pid names a process.
// A process is killed with its group, so that a child that saves the data ends
// too; what still is in a system call then can yet make a file, so deleting is
// tried again. The janitor has a process group of its own, so Ctrl-C does not end it first.
const janitor = `
trap '' HUP INT TERM
read -r _ && exit 1
for pid in "$0"/node-*/pid; do
	test -f "$pid" && kill -9 "-$(cat "$pid")"
done
for _ in 1 2 3 4 5; do
	rm -rf "$0" && exit
	sleep 1
done
`

// watchedDir returns the directory that the janitor empties after this
// process. The first call makes it and starts the janitor.
var watchedDir = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "holdfast-server-")
	if err != nil {
		return "", err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", janitor, dir)
	cmd.Stdin = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("server: start the shell that cleans up: %w", err)
	}
	lifeline = w
	return dir, nil
})

// lifeline keeps the janitor's pipe open for as long as this process lives.
//
//lint:ignore U1000 a file that nothing refers to is closed by the garbage collector
var lifeline *os.File
