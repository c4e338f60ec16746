package reexec_test

import (
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/reexec"
)

func TestMain(m *testing.M) {
	reexec.Main(map[string]reexec.Role{
		"echo": func(p *reexec.Parent) error {
			for {
				line, err := p.Hear()
				if err != nil {
					return nil // the end of the input
				}
				p.Say("heard", line)
			}
		},
		"fail": func(p *reexec.Parent) error {
			var why string
			if err := p.Job(&why); err != nil {
				return err
			}
			return errors.New(why)
		},
	})
	m.Run()
}

func TestTheyTalk(t *testing.T) {
	c := reexec.Spawn(t, "echo", nil)
	c.Say("a line")
	require.Equal(t, "a line", c.Hear("heard"))
	c.Signal(syscall.SIGSTOP)
	c.Say("while it is paused")
	c.Signal(syscall.SIGCONT)
	require.Equal(t, "while it is paused", c.Hear("heard"))
	require.NoError(t, c.Close(), "its input ended")
	require.NoError(t, c.Close(), "a second time")
}

func TestKill(t *testing.T) {
	c := reexec.Spawn(t, "echo", nil)
	c.Signal(syscall.SIGSTOP)
	c.Kill()
	var exit *exec.ExitError
	require.ErrorAs(t, c.Wait(), &exit)
	require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
}

func TestFailures(t *testing.T) {
	for role, says := range map[string]string{"fail": "fail: because\n", "dance": "dance: HOLDFAST_ROLE: no such role in this program\n"} {
		var stderr strings.Builder
		p, err := reexec.Start(role, "because", func(cmd *exec.Cmd) { cmd.Stderr = &stderr })
		require.NoError(t, err)
		_, err = p.Hear()
		require.ErrorContains(t, err, "exit status 1")
		require.Equal(t, says, stderr.String())
	}
	_, err := reexec.Start("echo", func() {})
	require.ErrorContains(t, err, "job of echo")
	_, err = reexec.Start("echo", nil, func(cmd *exec.Cmd) { cmd.Path = "/no/such/program" })
	require.ErrorContains(t, err, "start echo")
}
