// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

// loaded starts a server that has the library, and returns the flags that find it. The test runs beside
// others.
func loaded(t *testing.T) (*server.Deployment, place) {
	t.Helper()
	t.Parallel()
	d := server.Single(t, server.Owned())
	d.Load(t)
	return d, addresses(d)
}

// running is the command in the background. The test hears it by lines.
type running struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string // closed when all that write to the standard output have ended
	errs  bytes.Buffer
}

// begin starts "holdfast run" with these arguments.
func begin(t *testing.T, where place, args ...string) *running {
	t.Helper()
	r := &running{t: t, lines: make(chan string, 100)}
	r.cmd = exec.Command(binary, append(append([]string{"run"}, where...), args...)...)
	r.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	r.cmd.Stderr = &r.errs
	var err error
	r.stdin, err = r.cmd.StdinPipe()
	require.NoError(t, err)
	// A pipe of our own: that of exec.Cmd is closed when the command ends, and what it left is not heard.
	read, write, err := os.Pipe()
	require.NoError(t, err)
	r.cmd.Stdout = write
	require.NoError(t, r.cmd.Start())
	require.NoError(t, write.Close())
	go func() {
		defer close(r.lines)
		defer read.Close()
		for lines := bufio.NewScanner(read); lines.Scan(); {
			r.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}

// hear wants the next line.
func (r *running) hear(want string) {
	r.t.Helper()
	select {
	case got, ok := <-r.lines:
		if !ok {
			_ = r.cmd.Wait()
			require.FailNow(r.t, "it has ended", "%v %s", r.cmd.ProcessState, r.errs.String())
		}
		require.Equal(r.t, want, got)
	case <-time.After(soon):
		require.FailNow(r.t, "nothing is heard", "waiting for %q", want)
	}
}

// silent wants all that write to the standard output to end without another line.
func (r *running) silent() {
	r.t.Helper()
	select {
	case got, ok := <-r.lines:
		require.False(r.t, ok, "heard: %q", got)
	case <-time.After(soon):
		require.FailNow(r.t, "something still runs")
	}
}

// code waits for the end, and returns the exit code as a shell has it: 128 + n if signal n ended it.
func (r *running) code() int {
	r.t.Helper()
	ended := make(chan struct{})
	go func() { _ = r.cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(soon):
		require.FailNow(r.t, "it does not end")
	}
	if status := r.status(); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return r.cmd.ProcessState.ExitCode()
}

func (r *running) status() syscall.WaitStatus { return r.cmd.ProcessState.Sys().(syscall.WaitStatus) }

// holding begins a command that has the lock until finish.
func holding(t *testing.T, where place, args ...string) *running {
	t.Helper()
	r := begin(t, where, append(args, "--", "cat")...)
	_, err := io.WriteString(r.stdin, "started\n") // a shell that said so could miss a signal before it waits for cat
	require.NoError(t, err)
	r.hear("started")
	return r
}

func (r *running) finish() {
	r.t.Helper()
	require.NoError(r.t, r.stdin.Close())
	require.Equal(r.t, 0, r.code(), r.errs.String())
}
