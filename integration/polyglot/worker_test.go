// SPDX-License-Identifier: Apache-2.0

package polyglot

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const within = time.Minute // of one step of a worker, its start on a busy machine included

// running is a worker at work.
type running struct {
	name   string
	tb     testing.TB
	cmd    *exec.Cmd
	stdin  io.Closer
	lines  chan string // closed when it ends
	stderr *bytes.Buffer
}

// start starts a worker: HOST PORT MODE LOCK LEASE WAIT, in ms, and for mode work COUNTER ROUNDS.
// It is killed with all its children at the end of the test, if it runs then.
func (w worker) start(tb testing.TB, args ...string) *running {
	tb.Helper()
	cmd := exec.Command(w.argv[0], append(w.argv[1:len(w.argv):len(w.argv)], args...)...)
	cmd.Env = append(os.Environ(), w.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	r := &running{name: w.name, tb: tb, cmd: cmd, lines: make(chan string, 1000), stderr: &bytes.Buffer{}}
	cmd.Stderr = r.stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(tb, err)
	r.stdin = stdin
	stdout, err := cmd.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			r.lines <- lines.Text()
		}
		_ = cmd.Wait() // what it printed last says how it ended
		close(r.lines)
	}()
	tb.Cleanup(func() {
		r.kill()
		<-ended
	})
	return r
}

// kill kills the worker and its children, which have no time to say anything.
func (r *running) kill() { _ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) }

// next returns the words of the next line, nil at the end.
func (r *running) next() []string {
	r.tb.Helper()
	select {
	case line, ok := <-r.lines:
		if !ok {
			return nil
		}
		return strings.Fields(line)
	case <-time.After(within):
		r.tb.Fatalf("%s is silent", r.name)
		return nil
	}
}

// expect fails the test unless the next line begins with a word.
func (r *running) expect(word string) []string {
	r.tb.Helper()
	got := r.next()
	if len(got) == 0 {
		r.tb.Fatalf("%s ended before it was %q: %s", r.name, word, r.stderr.String())
	}
	if got[0] != word {
		r.tb.Fatalf("%s is %q, not %q", r.name, got, word)
	}
	return got
}

// held returns the fencing token when the worker has the lock.
func (r *running) held() int64 {
	r.tb.Helper()
	return number(r.tb, r.expect("held")[1])
}

// heldIn returns the slot too.
func (r *running) heldIn() (token, slot int64) {
	r.tb.Helper()
	words := r.expect("held")
	return number(r.tb, words[1]), number(r.tb, words[2])
}

// release makes the worker give the lock back.
func (r *running) release() {
	r.tb.Helper()
	require.NoError(r.tb, r.stdin.Close())
	r.expect("released")
}

func number(tb testing.TB, text string) int64 {
	tb.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(tb, err)
	return n
}
