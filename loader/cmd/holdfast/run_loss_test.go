// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// breakLock takes a lock from who has it.
func breakLock(t *testing.T, where place, name string) {
	t.Helper()
	r := where.do(t, "break", name, "--yes", "--reason", "INC-1234")
	require.Equal(t, 0, r.code, r)
}

// traps is a command that says which signals it gets, and goes on.
const traps = `for s in INT TERM HUP QUIT USR1 USR2 WINCH; do trap "echo $s" $s; done; echo started; while :; do sleep 5 & wait; done`

func TestRunPassesSignalsOn(t *testing.T) {
	_, where := loaded(t)
	r := begin(t, where, "a", "--", "sh", "-c", traps)
	r.hear("started")
	for _, s := range []struct {
		name   string
		signal syscall.Signal
	}{{"INT", syscall.SIGINT}, {"TERM", syscall.SIGTERM}, {"HUP", syscall.SIGHUP}, {"QUIT", syscall.SIGQUIT},
		{"USR1", syscall.SIGUSR1}, {"USR2", syscall.SIGUSR2}, {"WINCH", syscall.SIGWINCH}} {
		require.NoError(t, r.cmd.Process.Signal(s.signal))
		r.hear(s.name) // the next line is the next signal's: each comes once
	}
	breakLock(t, where, "a")
	r.hear("TERM")
	require.NoError(t, r.cmd.Process.Kill())
}

func TestRunOfACommandThatASignalEnds(t *testing.T) {
	_, where := loaded(t)
	for s, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGUSR1: 138} {
		r := holding(t, where, fmt.Sprint("by ", code))
		require.NoError(t, r.cmd.Process.Signal(s))
		require.Equal(t, code, r.code())
		require.Equal(t, s == syscall.SIGINT, r.status().Signaled(), "else a script around it would go on after Ctrl-C")
		after := where.do(t, "run", "-n", fmt.Sprint("by ", code), "true")
		require.Equal(t, 0, after.code, "the lock was given back")
	}
}

// A shell ends by SIGTERM at once. What it ran still cleans up: the next holder must not begin beside that.
func TestRunOfAShellThatASignalEnds(t *testing.T) {
	_, where := loaded(t)
	clean := filepath.Join(t.TempDir(), "clean")
	r := begin(t, where, "a", "--", "sh", "-c", `sh -c 'trap "echo stopping; until [ -e `+clean+
		` ]; do sleep 1; done; exit" TERM; echo started; sleep 1000 & wait'; echo goes on`)
	r.hear("started")
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGTERM))
	r.hear("stopping")
	time.Sleep(300 * time.Millisecond) // the shell has ended by now
	require.Equal(t, 1, where.do(t, "run", "-n", "a", "true").code)
	require.NoError(t, os.WriteFile(clean, nil, 0o600))
	require.Equal(t, 143, r.code())
	require.Equal(t, 0, where.do(t, "run", "-n", "a", "true").code)
}

func TestRunThatIsInterruptedWhileItWaits(t *testing.T) {
	_, where := loaded(t)
	h := holding(t, where, "a")
	for s, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		r := begin(t, where, "a", "--", "echo", "ran")
		waiters(t, where, "a", 1)
		require.NoError(t, r.cmd.Process.Signal(syscall.SIGWINCH), "which ends nothing")
		require.NoError(t, r.cmd.Process.Signal(s))
		require.Equal(t, code, r.code())
		require.Equal(t, s == syscall.SIGINT, r.status().Signaled())
		r.silent()
		waiters(t, where, "a", 0)
	}
	h.finish()
}

// A signal that comes while a file is read is not lost.
func TestRunThatIsInterruptedBeforeItAsks(t *testing.T) {
	_, where := loaded(t)
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, syscall.Mkfifo(file, 0o600))
	r := begin(t, where, "--password-file", file, "a", "--", "echo", "ran")
	slow, err := os.OpenFile(file, os.O_WRONLY, 0) // when it reads
	require.NoError(t, err)
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGTERM))
	_, err = slow.WriteString("secret\n")
	require.NoError(t, err)
	require.NoError(t, slow.Close())
	r.silent()
	require.Contains(t, []int{130, 143}, r.code(), "which signal it was is known since it listens")
}

// Who does not read what is said keeps nobody from the command.
func TestRunThatNobodyReads(t *testing.T) {
	_, where := loaded(t)
	reader, full, err := os.Pipe()
	require.NoError(t, err)
	defer reader.Close()
	require.NoError(t, full.SetWriteDeadline(time.Now().Add(time.Second)))
	for err == nil {
		_, err = full.Write([]byte("more than a pipe takes\n"))
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append(append([]string{"run"}, where...), "-v", "a", "--", "true")...)
	cmd.Stderr = full
	require.NoError(t, cmd.Run())
}

func TestRunIgnoresWhatNohupIgnores(t *testing.T) {
	_, where := loaded(t)
	for _, s := range []string{"HUP", "INT"} { // INT is ignored behind the "&" of a script
		shell := fmt.Sprintf(`trap "" %[1]s; exec %s run --addr %s a -- sh -c 'echo started; kill -%[1]s $PPID; kill -%[1]s $$; echo alive'`,
			s, binary, where[1])
		out, err := exec.Command("sh", "-c", shell).CombinedOutput()
		require.NoError(t, err, string(out))
		require.Equal(t, "started\nalive\n", string(out))
	}
}

// A pipe that nobody reads any more, as of "run ... 2>&1 | head", must not end run before the command has had its grace.
func TestRunWhenTheLockIsBrokenAndNobodyHearsIt(t *testing.T) {
	_, where := loaded(t)
	r := &running{t: t, lines: make(chan string, 100)}
	r.cmd = exec.Command(binary, append(append([]string{"run"}, where...), "a", "--grace", "1h", "--", "sh", "-c",
		`trap "sleep 1; echo cleaned up; exit 0" TERM; echo started; sleep 1000 & wait`)...)
	errs, closed, err := os.Pipe()
	require.NoError(t, err)
	r.cmd.Stderr = closed
	out, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, r.cmd.Start())
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	require.NoError(t, errs.Close())
	go func() {
		defer close(r.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			r.lines <- lines.Text()
		}
	}()
	r.hear("started")
	breakLock(t, where, "a")
	r.hear("cleaned up")
	r.silent()
	require.Equal(t, 75, r.code())
}

func TestRunWhenTheLockIsBroken(t *testing.T) {
	_, where := loaded(t)
	t.Run("it stops", func(t *testing.T) {
		t.Parallel()
		before := holding(t, where, "it stops") // who has waited is told the reason of a break
		r := begin(t, where, "it stops", "--grace", "1h", "--", "sh", "-c",
			`trap "echo stopping; exit 0" TERM; echo started; sleep 1000 & wait`)
		waiters(t, where, "it stops", 1)
		before.finish()
		r.hear("started")
		breakLock(t, where, "it stops")
		r.hear("stopping")
		require.Equal(t, 75, r.code())
		r.silent()
		require.Contains(t, r.errs.String(), "INC-1234")
	})
	for name, c := range map[string]struct{ flag, value, script string }{
		"it does not stop":        {"--grace", "100ms", `trap "" TERM; echo started; sleep 1000 & wait; wait`},
		"its child does not stop": {"--grace", "1h", `(trap "" TERM; echo started; sleep 1000; sleep 1000) & wait`},
		"at once":                 {"--grace", "0", `trap "echo stopping" TERM; echo started; sleep 1000`},
		"once":                    {"--once", "1h", `echo started; sleep 1000`},
		"while it is stopped":     {"--grace", "1h", `echo started; kill -STOP $$; echo goes on`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := begin(t, where, name, c.flag, c.value, "--", "sh", "-c", c.script)
			r.hear("started")
			breakLock(t, where, name)
			r.silent() // its children are gone too
			require.Equal(t, 75, r.code())
			require.Equal(t, name == "it does not stop", strings.Contains(r.errs.String(), "still runs after 100ms"))
		})
	}
}

// A loss that shows only when the lock is given back is told as any other.
func TestRunReadsAPasswordAgain(t *testing.T) {
	d, where := loaded(t)
	node, file := d.Nodes()[0], filepath.Join(t.TempDir(), "password")
	do := func(words ...string) string {
		reply, err := node.Do(t.Context(), words...)
		require.NoError(t, err, words)
		text, err := reply.ToString()
		require.NoError(t, err, words)
		return text
	}
	do("ACL", "SETUSER", "app", "on", ">old", "~*", "&*", "+@all")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o600))
	r := holding(t, where, "--lease", "6s", "--user", "app", "--password-file", file, "a")
	do("ACL", "SETUSER", "app", ">new", "<old")
	require.NoError(t, os.WriteFile(file, []byte("new"), 0o600))
	_, err := node.Do(t.Context(), "CLIENT", "KILL", "USER", "app")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(do("CLIENT", "LIST"), "user=app") }, soon, pollEvery)
	r.finish()

	// but a pipe, as of --password-file <(...), once
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	r = begin(t, where, "--user", "app", "--password-file", pipe, "b", "--", "echo", "ran")
	require.NoError(t, os.WriteFile(pipe, []byte("new"), 0o600))
	r.hear("ran")
	require.Equal(t, 0, r.code())
}

// A holder looks at its lock after a second. Its next renewal is 200 s away.
func TestRunHearsOfABreakAtOnce(t *testing.T) {
	d, where := loaded(t)
	r := begin(t, where, "--lease", "10m", "--grace", "0", "a", "--", "sh", "-c", "echo started; sleep 1000")
	r.hear("started")
	calls := func() string {
		count, _, _ := strings.Cut(d.Nodes()[0].Info(t.Context(), "commandstats", "cmdstat_fcall"), ",")
		return count
	}
	before := calls()
	require.Eventually(t, func() bool { return calls() != before }, soon, pollEvery)
	breakLock(t, where, "a")
	require.Equal(t, 75, r.code())
}

func TestRunWhenTheLockIsBrokenAtTheEnd(t *testing.T) {
	_, where := loaded(t)
	for _, flag := range []string{"--lease", "--once"} {
		r := where.do(t, "run", append([]string{"a" + flag, flag, "1h", "--", binary, "break", "a" + flag, "--yes", "--reason", "INC-1234"}, where...)...)
		require.Equal(t, 75, r.code, r)
		require.Contains(t, r.errors, "holdfast run: ", flag)
	}
}

func TestRunStopsBeforeTheLeaseEnds(t *testing.T) {
	d, where := loaded(t)
	var all []*running
	for name, command := range map[string]string{
		"stops":         `trap "echo stopping; exit 0" TERM; echo started; sleep 1000 & wait`,
		"does not stop": `trap "echo stopping" TERM; echo started; while :; do sleep 1000 & wait; done`,
	} {
		r := begin(t, where, name, "--lease", "6s", "--", "sh", "-c", command)
		r.hear("started")
		all = append(all, r)
	}
	require.NoError(t, d.Nodes()[0].Pause())
	t.Cleanup(func() { require.NoError(t, d.Nodes()[0].Resume()) })
	for _, r := range all {
		r.hear("stopping")
		require.Equal(t, 75, r.code())
		r.silent()
		require.Contains(t, r.errs.String(), "is not renewed")
	}
}

// A server that refuses to renew is not told to be silent.
func TestRunUnderAServerThatRefuses(t *testing.T) {
	d, where := loaded(t)
	r := begin(t, where, "a", "--lease", "3s", "--", "sh", "-c", "echo started; sleep 1000")
	r.hear("started")
	_, err := d.Nodes()[0].Do(context.Background(), "FUNCTION", "FLUSH")
	require.NoError(t, err)
	r.silent()
	require.Equal(t, 75, r.code())
	require.Contains(t, r.errs.String(), "the lock is not renewed, and the lease ends soon")
	require.NotContains(t, r.errs.String(), "does not answer")
}

// A server that hangs when the command has ended does not hold up who waits for that.
func TestRunOfASilentServerAtTheEnd(t *testing.T) {
	d, where := loaded(t)
	var all []*running
	for _, flag := range []string{"--min-hold", "--once"} {
		all = append(all, holding(t, where, "a"+flag, flag, "1h", "--timeout", "4s"))
	}
	require.NoError(t, d.Nodes()[0].Pause())
	t.Cleanup(func() { require.NoError(t, d.Nodes()[0].Resume()) })
	began := time.Now()
	for _, r := range all {
		r.finish()
	}
	require.Less(t, time.Since(began), 20*time.Second, "the lease is longer")
}

func TestRunThatWasPausedKillsAtOnce(t *testing.T) {
	_, where := loaded(t)
	r := begin(t, where, "a", "--lease", "5s", "--grace", "1h", "--", "sh", "-c",
		`trap "echo stopping" TERM; echo started; sleep 1000; sleep 1000`)
	r.hear("started")
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGSTOP))
	second := begin(t, where, "a", "--", "echo", "second")
	second.hear("second")
	require.Equal(t, 0, second.code())
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGCONT))
	r.silent()
	require.Equal(t, 75, r.code())
}

// The lease has not ended, and the server answers: there is nothing to end the command for.
func TestRunThatStoodStill(t *testing.T) {
	_, where := loaded(t)
	r := begin(t, where, "a", "--lease", "9s", "--", "sh", "-c", "echo started; sleep 9; echo ended")
	r.hear("started")
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(7 * time.Second) // the pause itself: less than SIGTERM's notice is left
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGCONT))
	r.hear("ended")
	require.Equal(t, 0, r.code())
}

func TestRunForTooLong(t *testing.T) {
	_, where := loaded(t)
	r := begin(t, where, "a", "--max-hold", "4s", "--grace", "4s", "--", "sh", "-c",
		`trap "echo stopping" TERM; echo started; while :; do sleep 1000 & wait; done`)
	r.hear("started")
	r.hear("stopping")
	r.silent()
	require.Equal(t, 124, r.code())
	after := where.do(t, "run", "-n", "a", "true")
	require.Equal(t, 0, after.code, "the lock was given back")
}
