// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireStopped waits until a process is stopped by a signal.
func requireStopped(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, state, found := bytes.Cut(stat, []byte(") "))
		return err == nil && found && state[0] == 'T'
	}, soon, pollEvery)
}

func TestRunThatIsKilledTakesTheCommandAlong(t *testing.T) {
	_, where := loaded(t)
	r := begin(t, where, "a", "--lease", "5s", "--", "sh", "-c",
		"trap '' HUP TERM; echo started; read -r line; echo beside the next")
	r.hear("started")
	require.NoError(t, r.cmd.Process.Kill())
	r.silent()
	require.Equal(t, 128+9, r.code())
	next := holding(t, where, "a") // when the lease is over
	next.finish()
}

func TestRunIsStoppedAndGoesOn(t *testing.T) {
	_, where := loaded(t)
	r := begin(t, where, "a", "--", "sh", "-c", `trap "echo went on" CONT; echo started; while read -r line; do echo "$line"; done`)
	r.hear("started")
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGTSTP))
	requireStopped(t, r.cmd.Process.Pid)
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGCONT))
	r.hear("went on")
	require.NoError(t, r.stdin.Close())
	require.Equal(t, 0, r.code())
}
