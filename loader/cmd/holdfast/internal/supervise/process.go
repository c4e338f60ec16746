package supervise

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
)

// StartError is why a command could not be started.
type StartError struct {
	Code int // as shells have it: 127, not found; 126, all else
	Err  error
}

func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *StartError) Unwrap() error { return e.Err }

func startError(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &StartError{127, err}
	}
	return &StartError{126, err}
}

// Find reports whether there is such a command: before anybody waits for a lock for nothing.
//
// Errors: a *StartError.
func (c *Command) Find() error {
	if _, err := exec.LookPath(c.Args[0]); err != nil {
		return startError(err)
	}
	return nil
}

// process is a command that runs.
type process struct {
	cmd   *exec.Cmd
	group bool          // it has a process group of its own
	ended chan struct{} // closed when it was waited for
}

func (c *Command) start(group bool) (*process, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Env, c.Stdin, c.Stdout, c.Stderr
	p := &process{cmd: cmd, group: group, ended: make(chan struct{})}
	cmd.SysProcAttr = attributes(p.group)
	started := make(chan error)
	go func() {
		// Linux kills the command when the thread that started it ends, not the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the process's state says it all
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, startError(err)
	}
	return p, nil
}

// Catch makes a channel of the signals that end a wait or are passed on to a command. A signal that is
// ignored, as nohup does, stays so.
func Catch() chan os.Signal {
	caught := make(chan os.Signal, 16)
	notify(caught, ends)
	notify(caught, passed)
	return caught
}
