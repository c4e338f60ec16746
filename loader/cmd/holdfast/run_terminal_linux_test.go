package main_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// openTerminal makes a terminal: what is written to ours is typed, and what programs print is read there.
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = ours.Close() })
	raw, err := ours.SyscallConn()
	require.NoError(t, err)
	var number int
	require.NoError(t, raw.Control(func(fd uintptr) {
		require.NoError(t, unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0))
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
	}))
	require.NoError(t, err)
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	return ours, theirs
}

func TestRunInATerminal(t *testing.T) {
	_, where := loaded(t)
	ours, theirs := openTerminal(t)
	script := `trap "echo got INT" INT; trap "echo got TERM; exit 0" TERM; echo started; read -r line; echo "read $line"; while :; do sleep 5 & wait; done`
	cmd := exec.Command(binary, append(append([]string{"run"}, where...), "a", "--", "sh", "-c", script)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	require.NoError(t, theirs.Close())
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for all := bufio.NewScanner(ours); all.Scan(); {
			lines <- strings.TrimPrefix(strings.TrimSpace(all.Text()), "^C")
		}
	}()
	r := &running{t: t, cmd: cmd, lines: lines}
	r.hear("started")
	_, err := ours.WriteString("typed\n")
	require.NoError(t, err)
	r.hear("typed")
	r.hear("read typed") // it is in the foreground
	_, err = ours.WriteString("\x03")
	require.NoError(t, err)
	r.hear("got INT")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	r.hear("got TERM") // Ctrl-C came once
	require.Equal(t, 0, r.code())
}
