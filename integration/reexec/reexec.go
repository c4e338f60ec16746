// SPDX-License-Identifier: Apache-2.0

// Package reexec runs the program that it is part of once more, as another
// process that plays a role: a holder that a test kills, a worker of a demo. The
// two processes talk over pipes, by default in lines.
package reexec

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// What a process is started for: the name of its role, and its job as JSON.
const (
	roleVariable = "HOLDFAST_ROLE"
	jobVariable  = "HOLDFAST_JOB"
)

// Role is what a process does. It should return when its input ends, so that it
// does not outlive the process that started it.
type Role func(*Parent) error

// Main plays the role that this process was started for and ends the process:
// with status 1 and the error on standard error if the role fails. It returns at
// once if the process was not started for a role. A main or TestMain calls it
// first.
func Main(roles map[string]Role) {
	name := os.Getenv(roleVariable)
	if name == "" {
		return
	}
	play := roles[name]
	if play == nil {
		play = func(*Parent) error { return fmt.Errorf("%s: no such role in this program", roleVariable) }
	}
	if err := play(&Parent{bufio.NewReader(os.Stdin)}); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Parent is the process that started this one.
type Parent struct{ In *bufio.Reader }

// Job reads what Start was given.
func (p *Parent) Job(job any) error {
	if err := json.Unmarshal([]byte(os.Getenv(jobVariable)), job); err != nil {
		return fmt.Errorf("read %s: %w", jobVariable, err)
	}
	return nil
}

// Say prints a line for the parent.
func (p *Parent) Say(words ...any) { fmt.Println(words...) }

// Hear blocks until the parent says a line. The error is io.EOF when the parent
// is gone or has no more to say.
func (p *Parent) Hear() (string, error) { return hear(p.In) }

// Process is another process of this program. Its methods are safe for
// concurrent use, but only one goroutine may read its output.
type Process struct {
	In  io.WriteCloser
	Out *bufio.Reader

	cmd  *exec.Cmd
	wait func() error
}

// Start starts this program in a role, with a job that JSON can carry. Its
// standard error is that of this process. Before it starts, the command can be
// changed. The caller must Kill or Close it.
func Start(role string, job any, change ...func(*exec.Cmd)) (*Process, error) {
	text, err := json.Marshal(job)
	if err != nil {
		return nil, fmt.Errorf("job of %s: %w", role, err)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, jobVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	for _, f := range change {
		f(cmd)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	return &Process{In: in, Out: bufio.NewReader(out), cmd: cmd, wait: sync.OnceValue(cmd.Wait)}, nil
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Say writes a line to the process.
func (p *Process) Say(line string) error {
	_, err := io.WriteString(p.In, line+"\n")
	return err
}

// Hear blocks until the process prints a line. If the process ends instead, the
// error says how.
func (p *Process) Hear() (string, error) {
	line, err := hear(p.Out)
	if err != nil {
		return "", fmt.Errorf("process %d ended before it said a line: %w", p.Pid(), p.Wait())
	}
	return line, nil
}

// Signal sends a signal.
func (p *Process) Signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

// Wait blocks until the process is gone and returns how it ended: nil if its
// role returned nil. What it printed and nobody read is lost then.
func (p *Process) Wait() error { return p.wait() }

// Kill ends the process with SIGKILL, paused or not, and blocks until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails only if it is gone
	_ = p.Wait()
}

// Close ends the process's input and blocks until it is gone. It returns how it
// ended.
func (p *Process) Close() error {
	p.In.Close()
	return p.Wait()
}

func hear(from *bufio.Reader) (string, error) {
	line, err := from.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}
