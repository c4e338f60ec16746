// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

func TestRunInATerminal(t *testing.T) {
	_, where := loaded(t)
	script := `trap "echo got INT" INT; trap "echo got TERM; exit 0" TERM; echo started; read -r line; echo "read $line"
		while :; do sleep 5 & wait; done`
	cmd := exec.Command(binary, append(append([]string{"run"}, where...), "a", "--", "sh", "-c", script)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	terminal, err := pty.Start(cmd)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = terminal.Close()
	})
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for all := bufio.NewScanner(terminal); all.Scan(); {
			lines <- strings.TrimPrefix(strings.TrimSpace(all.Text()), "^C")
		}
	}()
	r := &running{t: t, cmd: cmd, lines: lines}
	r.hear("started")
	_, err = terminal.WriteString("typed\n")
	require.NoError(t, err)
	r.hear("typed")
	r.hear("read typed") // it is in the foreground
	_, err = terminal.WriteString("\x03")
	require.NoError(t, err)
	r.hear("got INT")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	r.hear("got TERM") // Ctrl-C came once
	require.Equal(t, 0, r.code())
}

// Of a terminal that goes away only the leader of its session hears: run, after "ssh -t HOST holdfast run ...".
func TestRunLosesItsTerminal(t *testing.T) {
	_, where := loaded(t)
	cmd := exec.Command(binary, append(append([]string{"run"}, where...), "a", "--", "sh", "-c",
		`trap "exit 3" HUP; echo started; sleep 100 & wait; exit 4`)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	terminal, err := pty.Start(cmd)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(terminal).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "started\r\n", line)
	require.NoError(t, terminal.Close())
	_ = cmd.Wait()
	require.Equal(t, 3, cmd.ProcessState.ExitCode())
}
