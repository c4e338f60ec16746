// SPDX-License-Identifier: Apache-2.0

package supervise_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// In a container whose first process waits for nobody, who has ended stays in the group of a command.
func TestWhoHasEndedIsNotWaitedFor(t *testing.T) {
	reaper := func(on uintptr) { require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, on, 0, 0, 0)) }
	reaper(1)
	defer reaper(0)
	h, _ := newHold(t, time.Hour)
	lines, ended := run(t, h, time.Hour, `sh -c "echo started; sleep 1000"; echo goes on`)
	lines.hear("started")
	require.NoError(t, unix.Kill(os.Getpid(), unix.SIGTERM))
	result, _ := ended()
	require.Equal(t, 143, result.Code)
}
