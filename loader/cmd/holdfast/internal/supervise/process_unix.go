// SPDX-License-Identifier: Apache-2.0

//go:build unix

package supervise

import (
	"bytes"
	"cmp"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ends are the signals that end who does not know them, also while it waits for a lock.
var ends = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2}

// passed are those that a command gets beside them.
var passed = []os.Signal{unix.SIGWINCH}

// pipes are caught and come to nothing: a write fails then. (A command would be born with what is ignored.)
var pipes = []os.Signal{unix.SIGPIPE}

// jobs are caught only while a command with its own process group runs.
var jobs = []os.Signal{unix.SIGTSTP, unix.SIGCONT}

// terminals are those that a terminal sends to all of its foreground, or a shell to all of a job.
var terminals = []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGHUP, unix.SIGWINCH}

func notify(caught chan<- os.Signal, signals []os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
}

// Shell is how a shell runs a text.
func Shell(text string) []string {
	return []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh"), "-c", text}
}

// Code is the exit code of who was ended by a signal, as shells have it.
func Code(s os.Signal) int { return 128 + int(s.(syscall.Signal)) }

// Interrupt ends this process by SIGINT. A shell's script stops at Ctrl-C if that has ended its command, and
// goes on after an exit code. It returns where SIGINT is ignored, as by the first process of a container.
func Interrupt() {
	if os.Getpid() == 1 || signal.Ignored(unix.SIGINT) {
		return
	}
	signal.Reset(unix.SIGINT)
	if unix.Kill(os.Getpid(), unix.SIGINT) == nil {
		time.Sleep(time.Second) // the runtime ends the process, perhaps in another thread
	}
}

// Shared reports whether this process is in the foreground of a terminal. There a command shares its
// process group, because only the foreground may read from the terminal. What the terminal sends, as
// for Ctrl-C, then reaches both, and is not passed on.
func Shared() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false // no terminal: cron, systemd, CI
	}
	defer tty.Close()
	foreground, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && foreground == unix.Getpgrp()
}

func (p *process) pass(s os.Signal, hold Hold) {
	sid, _ := unix.Getsid(0)
	switch {
	// A terminal that goes away tells the leader of its session only: here after "ssh -t HOST holdfast run ...".
	case !p.group && slices.Contains(terminals, s) && (s != unix.SIGHUP || sid != os.Getpid()):
	case s == unix.SIGTSTP:
		p.signal(unix.SIGTSTP)
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP) // until SIGCONT
	case s == unix.SIGCONT && hold.Context().Err() != nil:
		// The lease ended meanwhile. The command must not run on.
	default:
		p.signal(s.(syscall.Signal))
	}
}

// signal goes to the group, if the command has one. That nobody is there any more is no error.
func (p *process) signal(s syscall.Signal) {
	pid := p.cmd.Process.Pid
	if p.group {
		pid = -pid
	}
	_ = unix.Kill(pid, s)
}

func (p *process) terminate() {
	p.signal(unix.SIGTERM)
	p.signal(unix.SIGCONT) // a command that is stopped would not hear of it
}

func (p *process) kill() { p.signal(unix.SIGKILL) }

// killRest kills what is left of the group after its leader. The system gives a number to no new
// process while there is a group of that number.
func (p *process) killRest() {
	if p.group {
		p.kill()
	}
}

// left reports whether any of the group still runs. What has ended and is not waited for does not: the first
// process of a container may wait for nobody.
func (p *process) left() bool {
	pid := p.cmd.Process.Pid
	if !p.group || unix.Kill(-pid, 0) == unix.ESRCH {
		return false
	}
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	ended := false
	for _, path := range all {
		text, _ := os.ReadFile(path)
		// behind the name, which may have anything in it: state, parent, group, and, later, how many threads
		about := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(about) <= 17 || about[2] != strconv.Itoa(pid) {
			continue
		}
		// A program whose first thread has ended, and others have not, is no zombie, though it looks like one.
		if ended = about[0] == "Z" && about[17] == "1"; !ended {
			return true
		}
	}
	return !ended // who runs is hidden, as by hidepid; or no Linux, where each has a parent that waits
}

// told reports whether a signal that asks to end ended it.
func told(state *os.ProcessState) bool {
	how, ok := state.Sys().(syscall.WaitStatus)
	return ok && how.Signaled() && slices.Contains(ends, os.Signal(how.Signal()))
}

func status(state *os.ProcessState) int {
	if how, ok := state.Sys().(syscall.WaitStatus); ok && how.Signaled() {
		return Code(how.Signal())
	}
	return state.ExitCode()
}

// interrupted reports whether SIGINT ended it, and not an exit code that says so.
func interrupted(state *os.ProcessState) bool {
	how, ok := state.Sys().(syscall.WaitStatus)
	return ok && how.Signaled() && how.Signal() == unix.SIGINT
}
