// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// StartCode is the exit code for a command that could not be started, as shells have it.
func StartCode(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return 126
}

// Find says why there is no such command: before anybody waits for a lock for nothing.
func (c *Command) Find() error {
	_, err := exec.LookPath(c.Args[0])
	return err
}

// process is a command that runs.
type process struct {
	cmd   *exec.Cmd
	group bool          // it has a process group of its own
	ended chan struct{} // closed when it was waited for
}

func (c *Command) start(group bool) (*process, error) {
	p := &process{cmd: c.cmd(group, c.Args...), group: group, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux kills the command when the thread that started it ends, not the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		if errors.Is(err, syscall.ENOEXEC) { // a script without "#!": the shell's, as to execvp(3)
			p.cmd = c.cmd(group, append([]string{"/bin/sh", p.cmd.Path}, c.Args[1:]...)...)
			err = p.cmd.Start()
		}
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the process's state says it all
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// The pauses between two looks at what is left of a group: a look goes through all processes.
const firstPause, lastPause = 5 * time.Millisecond, 500 * time.Millisecond

// linger waits for what a signal left of the group. A shell, as that of -c, ends by SIGTERM at once. What it
// ran may still clean up, and that must not be beside the next holder.
func (p *process) linger(hold Hold, signals <-chan os.Signal) {
	for pause := firstPause; told(p.cmd.ProcessState) && p.left(); pause = min(2*pause, lastPause) {
		select {
		case s := <-signals:
			p.pass(s, hold)
		case <-hold.Context().Done():
			return
		case <-time.After(pause):
		}
	}
}

func (c *Command) cmd(group bool, args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Env, c.Stdin, c.Stdout, c.Stderr
	cmd.SysProcAttr = attributes(group)
	return cmd
}

// Catch makes a channel of the signals that end a wait or are passed on to a command. A signal that is
// ignored, as nohup does, stays so.
//
// A line that nobody reads any more must not end this process, as SIGPIPE would, before the command.
func Catch() chan os.Signal {
	caught := make(chan os.Signal, 16)
	notify(make(chan os.Signal, 1), pipes)
	notify(caught, ends)
	notify(caught, passed)
	return caught
}

// Interrupted is the cause of a wait that a signal ended.
type Interrupted struct{ os.Signal }

func (i Interrupted) Error() string { return "interrupted: " + i.String() }

// Interruptible lets signals end a wait, until the returned function is called. Those that come after
// that are left in the channel.
func Interruptible(signals <-chan os.Signal, stop context.CancelCauseFunc) (quiet func()) {
	enough, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case s := <-signals:
				if slices.Contains(ends, s) {
					stop(Interrupted{s})
				}
			case <-enough:
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(enough); <-ended })
}
