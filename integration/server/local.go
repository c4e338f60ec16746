// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
)

// local is a server as a process of this machine. Its directory holds
// redis.conf, log, pid (for the janitor), what was put there, and what the
// server writes.
type local struct {
	binary   string
	dir      string
	sentinel bool
	env      []string // beside ours

	run atomic.Pointer[run] // the last one; nil: it was never started
}

// run is a server from its start to its end.
type run struct {
	*os.Process
	done chan struct{}
}

func newLocal(f Flavour, sentinel bool) (*local, error) {
	parent, err := watchedDir()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "node-")
	if err != nil {
		return nil, err
	}
	return &local{binary: f.Binary, dir: dir, sentinel: sentinel}, nil
}

func (l *local) Dir() string { return l.dir }

func (l *local) Preload(name string) { l.env = []string{"LD_PRELOAD=" + filepath.Join(l.dir, name)} }

func (l *local) Put(name, text string) error {
	// Not in its place: a server that reads it now must not find half of it.
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Start runs the server through a shell that writes its process id before it
// becomes the server, so that there is no moment at which the janitor does not
// know of it. A process group of its own keeps Ctrl-C at the terminal from it:
// the janitor ends it.
func (l *local) Start() error {
	log, err := os.OpenFile(filepath.Join(l.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"-c", `echo $$ > "$0/pid" && exec "$@"`, l.dir, l.binary, filepath.Join(l.dir, "redis.conf")}
	if l.sentinel {
		args = append(args, "--sentinel")
	}
	cmd := exec.Command("/bin/sh", args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), l.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	r := &run{cmd.Process, make(chan struct{})}
	l.run.Store(r)
	go func() {
		defer close(r.done)
		_ = cmd.Wait() // how a server ended shows in its log
		// The number can soon be another process: the janitor must not see it.
		_ = os.Remove(filepath.Join(l.dir, "pid"))
	}()
	return nil
}

func (l *local) Signal(sig syscall.Signal) error {
	r := l.run.Load()
	if r == nil || ended(l) {
		return os.ErrProcessDone
	}
	if sig != syscall.SIGKILL {
		return r.Signal(sig)
	}
	// With its group: a child that saves the data would still write to dir.
	return syscall.Kill(-r.Pid, sig)
}

func (l *local) Done() <-chan struct{} {
	if r := l.run.Load(); r != nil {
		return r.done
	}
	return never
}

func (l *local) Log() string {
	text, _ := os.ReadFile(filepath.Join(l.dir, "log"))
	return string(text)
}

func (l *local) Delete() error { return os.RemoveAll(l.dir) }
