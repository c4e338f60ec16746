// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

const rows, columns = 24, 120

// session is the command in a terminal of its own.
type session struct {
	t    *testing.T
	cmd  *exec.Cmd
	pty  *os.File
	read chan struct{} // closed when all is read
	mu   sync.Mutex
	text bytes.Buffer
	view vt10x.Terminal // what a person sees
}

func inTerminal(t *testing.T, env []string, args ...string) *session {
	t.Helper()
	s := &session{t: t, cmd: exec.Command(binary, args...), read: make(chan struct{}),
		view: vt10x.New(vt10x.WithSize(columns, rows))}
	s.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=xterm-256color"}, env...)
	var err error
	s.pty, err = pty.StartWithSize(s.cmd, &pty.Winsize{Rows: rows, Cols: columns})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // if it has not ended
		_ = s.pty.Close()
		<-s.read
	})
	go func() {
		defer close(s.read)
		part := make([]byte, 4096)
		for {
			n, err := s.pty.Read(part)
			s.mu.Lock()
			s.text.Write(part[:n])
			_, _ = s.view.Write(part[:n]) // it never fails
			s.mu.Unlock()
			if err != nil { // EIO, when the command has ended
				return
			}
		}
	}()
	return s
}

func (s *session) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *session) sees(text string) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Logf("shown: %q", s.shown())
		}
	}()
	require.Eventually(s.t, func() bool { return strings.Contains(s.shown(), text) }, soon, pollEvery,
		"waiting for %q", text)
}

// shows waits until the text stands on the screen, which is drawn over and over.
func (s *session) shows(text string) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Log(s.screen())
		}
	}()
	require.Eventually(s.t, func() bool { return strings.Contains(s.screen(), text) }, soon, pollEvery,
		"waiting for %q", text)
}

func (s *session) screen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.String()
}

func (s *session) types(keys string) {
	s.t.Helper()
	_, err := s.pty.WriteString(keys)
	require.NoError(s.t, err)
}

func (s *session) ends() int {
	s.t.Helper()
	<-s.read
	_ = s.cmd.Wait() // its exit code says all
	return s.cmd.ProcessState.ExitCode()
}

func TestWatchOnATerminal(t *testing.T) {
	d, _ := loaded(t)
	c, other := open(t, d.ClientOption(), client.Config{}), open(t, d.ClientOption(), client.Config{})
	lock, err := c.Acquire(context.Background(), "report")
	require.NoError(t, err)
	s := inTerminal(t, nil, "watch", "--addr", d.Addrs()[0], "--every", "50ms")
	s.shows(">  report")
	s.shows("1 held  0 waiting  0.0 hand-overs/s")

	got := wait(t, other, "report", 1)
	s.shows("1 held  1 waiting")
	s.types("\r")
	s.shows("listening")
	require.Contains(t, s.screen(), "PLACE")
	s.types("\x1b")
	s.shows("s sort by age")

	require.NoError(t, lock.Release(context.Background()))
	require.NotNil(t, <-got)
	s.shows("1 held  0 waiting")

	s.types("p")
	s.shows("paused")
	_, err = c.Acquire(context.Background(), "order:42")
	require.NoError(t, err)
	s.types("s")
	s.shows("sort by name")
	require.NotContains(t, s.screen(), "order:42")
	s.types("p")
	s.shows("order:42")
	require.Contains(t, s.screen(), ">  report", "the cursor stays at its lock")
	require.NoError(t, d.Nodes()[0].Pause())
	s.types("w")
	s.shows("looking ...")
	require.NoError(t, d.Nodes()[0].Resume())
	s.shows("nobody waits")
	require.NotContains(t, s.screen(), "looking ...")

	require.NoError(t, d.Nodes()[0].Kill())
	s.shows("not complete")
	require.Contains(t, s.screen(), "at least 0 held")
	s.types("q")
	require.Equal(t, 0, s.ends())
	require.Contains(t, s.shown(), "\x1b[?1049l", "the screen is given back")
}

// A break from the screen wants a reason, and then the consent.
func TestBreakFromTheScreen(t *testing.T) {
	d, where := loaded(t)
	c := open(t, d.ClientOption(), client.Config{})
	lock, err := c.Acquire(context.Background(), "report")
	require.NoError(t, err)
	_, err = c.Acquire(context.Background(), "order:42")
	require.NoError(t, err)
	s := inTerminal(t, nil, append(where, "watch", "--every", "50ms", "--sort", "name")...)
	s.shows(">  order:42")

	s.types("?")
	s.shows("take it from its holder")
	s.types("?")
	s.shows("2 held")
	s.types("/rep\r")
	s.shows(">  report")
	s.shows("1 held")
	s.shows("only rep")
	require.NotContains(t, s.screen(), "order:42")

	asks := func(keys, question string) {
		t.Helper()
		s.types(keys)
		s.shows(question)
	}
	for _, no := range []string{"\x1b", "  \r", "it hangs\rn\r", "it hangs\r\r"} {
		asks("b", "give the reason")
		asks(no, "p pause")
		require.NoError(t, lock.Context().Err())
	}
	asks("b", "give the reason")
	asks("it hanx\x7fgs\r", "Its work may still be running. [y/N]")
	s.types("y\r")
	<-lock.Context().Done()
	require.ErrorContains(t, context.Cause(lock.Context()), "it hangs")
	s.shows("report: taken from")
	s.shows("no locks to show")
	asks("/\x7f\x7f\x7f\r", ">  order:42")
	s.types("q")
	require.Equal(t, 0, s.ends())
}

// What is worth least falls away in a narrow terminal.
func TestWatchInANarrowTerminal(t *testing.T) {
	d, where := loaded(t)
	c := open(t, d.ClientOption(), client.Config{})
	_, err := c.Acquire(context.Background(), strings.Repeat("long-", 5))
	require.NoError(t, err)
	s := inTerminal(t, nil, append(where, "watch", "--every", "50ms")...)
	s.shows("TOKEN")
	resize := func(columns uint16) {
		t.Helper()
		s.mu.Lock()
		s.view.Resize(int(columns), rows)
		s.mu.Unlock()
		require.NoError(t, pty.Setsize(s.pty, &pty.Winsize{Rows: rows, Cols: columns}))
	}
	resize(25)
	s.shows("long-long-lo…  0")
	require.Contains(t, s.screen(), "WAITERS")
	require.NotContains(t, s.screen(), "HOLDER")
	resize(columns)
	s.shows("TOKEN")
}

func TestColoursOnATerminalOnly(t *testing.T) {
	d, _ := loaded(t)
	_, err := open(t, d.ClientOption(), client.Config{}).Acquire(context.Background(), "report")
	require.NoError(t, err)
	for _, c := range []struct {
		name     string
		env      []string
		coloured bool
	}{
		{"plain", nil, true},
		{"NO_COLOR", []string{"NO_COLOR=1"}, false},
		{"dumb", []string{"TERM=dumb"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := inTerminal(t, c.env, "ls", "--addr", d.Addrs()[0])
			require.Equal(t, 0, s.ends())
			require.Contains(t, s.shown(), "report")
			require.Equal(t, c.coloured, strings.Contains(s.shown(), "\x1b["), "%q", s.shown())
		})
	}
}

func TestBreakAsks(t *testing.T) {
	d, _ := loaded(t)
	c := open(t, d.ClientOption(), client.Config{})
	lock, err := c.Acquire(context.Background(), "report")
	require.NoError(t, err)
	ask := func() *session {
		s := inTerminal(t, nil, "break", "report", "--reason", "it hangs", "--addr", d.Addrs()[0])
		s.sees("[y/N] ")
		require.Contains(t, s.shown(), lock.Owner(), "it says who would lose the lock")
		return s
	}
	for _, no := range []string{"\n", "n\n", "what?\n", "\x04"} {
		s := ask()
		s.types(no)
		require.Equal(t, 4, s.ends(), "%q", s.shown())
		require.Contains(t, s.shown(), "nothing was broken")
		require.NoError(t, lock.Context().Err())
	}
	s := ask() // and the lock changes hands meanwhile
	require.NoError(t, lock.Release(context.Background()))
	lock, err = c.Acquire(context.Background(), "report")
	require.NoError(t, err)
	s.types("y\n")
	require.Equal(t, 4, s.ends(), "%q", s.shown())
	require.Contains(t, s.shown(), "changed hands")
	require.NoError(t, lock.Context().Err())

	s = ask()
	s.types("\x03") // interrupt
	require.Equal(t, 130, s.ends(), "%q", s.shown())
	require.NoError(t, lock.Context().Err())

	s = ask()
	s.types("y\n")
	require.Equal(t, 0, s.ends(), "%q", s.shown())
	info, err := c.Inspect(context.Background(), "report")
	require.NoError(t, err)
	require.False(t, info.Held)
}

// Nobody has the lock when the question is asked, or several have it. Who takes it before the answer keeps it.
func TestBreakOfWhatNobodyHasAlone(t *testing.T) {
	d, where := loaded(t)
	c := open(t, d.ClientOption(), client.Config{})
	for name, c1 := range map[string]struct {
		words  []string // of the first holder
		broken bool
		flags  []string
	}{
		"a record":            {nil, true, []string{"--forget"}},
		"a record of several": {[]string{"SHARED"}, true, []string{"--forget"}},
		"several":             {[]string{"SHARED"}, false, []string{"--reason", "they hang"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := d.Nodes()[0].Do(context.Background(),
				append([]string{"FCALL", "holdfast_acquire", "1", "lock:" + name, "me", "600000"}, c1.words...)...)
			require.NoError(t, err)
			if c1.broken {
				breakLock(t, where, name)
			}
			s := inTerminal(t, nil, append(append(where, "break", name), c1.flags...)...)
			s.sees("[y/N] ")
			if !c1.broken {
				_, err := d.Nodes()[0].Do(context.Background(), "FCALL", "holdfast_release", "1", "lock:"+name, "me")
				require.NoError(t, err)
			}
			lock, err := c.Acquire(context.Background(), name)
			require.NoError(t, err)
			s.types("y\n")
			s.ends()
			require.NoError(t, lock.Renew(context.Background()), "%q", s.shown())
		})
	}
}

// A lock that is kept until the end of an interval is not taken for one that hangs: a "y" lets no job
// run again, and drops no value.
func TestBreakOfAKeptLockAsksLouder(t *testing.T) {
	d, where := loaded(t)
	do := func(words ...string) {
		t.Helper()
		_, err := d.Nodes()[0].Do(context.Background(), append([]string{"FCALL"}, words...)...)
		require.NoError(t, err)
	}
	do("holdfast_acquire", "1", "lock:report", "me", "600000", "MINHOLD", "600000")
	s := inTerminal(t, nil, append(where, "break", "report", "--reason", "it hangs")...)
	s.sees("a job may run again before that. To do so, type the name of the lock: ")
	s.types("y\n")
	require.Equal(t, 4, s.ends(), "%q", s.shown())
	do("holdfast_release", "1", "lock:report", "me")
	require.Contains(t, holdfast(t, nil, append(where, "ls")...).out, "nobody: kept until ")
	require.Contains(t, holdfast(t, nil, append(where, "inspect", "report")...).out, "kept until")
	for _, answer := range []string{"y\n", "report\n"} {
		s := inTerminal(t, nil, append(where, "break", "report", "--reason", "run it again")...)
		s.sees("type the name of the lock: ")
		s.types(answer)
		code := map[string]int{"y\n": 4, "report\n": 0}[answer]
		require.Equal(t, code, s.ends(), "%q", s.shown())
	}
	r := holdfast(t, nil, append(where, "inspect", "report")...)
	require.Equal(t, 5, r.code, r)
	require.Contains(t, r.out, "the lock is free")

	// a value, which nobody is shown
	do("holdfast_acquire", "1", "lock:report", "me", "600000")
	do("holdfast_finish", "1", "lock:report", "me", "s3cret", "600000")
	for _, looks := range []string{"ls", "ls --json", "inspect report", "inspect report --json", "queue report --json",
		"watch --json --count 1", "doctor --json"} {
		r = where.do(t, strings.Fields(looks)[0], strings.Fields(looks)[1:]...)
		require.NotContains(t, r.out+r.errors, "s3cret", looks)
		require.Equal(t, looks == "inspect report", strings.Contains(r.out, "UTC: a value that is not shown"), r)
		require.Equal(t, strings.HasSuffix(looks, "report --json"), strings.Contains(r.out, `"has_value": true`), r)
	}
	s = inTerminal(t, nil, append(where, "break", "report", "--reason", "it was revoked")...)
	s.sees("To drop it, so that the next one makes another, type the name of the lock: ")
	s.types("report\n")
	require.Equal(t, 0, s.ends(), "%q", s.shown())
	require.Contains(t, s.shown(), "its value is dropped")
	require.NotContains(t, s.shown(), "s3cret")
}

// The name that is typed is that of the lock, not one that is like it.
func TestBreakOfAKeptLockWantsItsName(t *testing.T) {
	d, where := loaded(t)
	for _, name := range []string{"JOB", "job "} {
		_, err := d.Nodes()[0].Do(context.Background(), "FCALL", "holdfast_acquire", "1", "lock:"+name, "me", "600000", "MINHOLD", "600000")
		require.NoError(t, err)
		for _, c := range []struct {
			answer string
			code   int
		}{{"job", 4}, {name, 0}} {
			s := inTerminal(t, nil, append(where, "break", name, "--reason", "run it again")...)
			s.sees("type the name of the lock: ")
			s.types(c.answer + "\n")
			require.Equal(t, c.code, s.ends(), "%q", s.shown())
		}
	}
}

// Progress is for people who wait: after a second, on standard error, on a terminal.
func TestProgress(t *testing.T) {
	d, _ := loaded(t)
	require.NoError(t, d.Nodes()[0].Pause())
	s := inTerminal(t, nil, "ls", "--addr", d.Addrs()[0])
	s.sees("connecting ...")
	require.NoError(t, d.Nodes()[0].Resume())
	require.Equal(t, 0, s.ends(), "%q", s.shown())
	require.Contains(t, s.shown(), "\r\x1b[K", "the line goes")

	require.NoError(t, d.Nodes()[0].Pause())
	r := holdfast(t, nil, "ls", "--addr", d.Addrs()[0], "--timeout", "3s")
	require.NoError(t, d.Nodes()[0].Resume())
	require.Equal(t, 1, r.code, r)
	require.NotContains(t, r.errors, "connecting ...")
}
