// SPDX-License-Identifier: Apache-2.0

package supervise_test

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// threads, in the environment, ends the first thread of this program. Another one goes on until there is a
// file of that name.
const threads = "SUPERVISE_TEST_THREADS"

func init() {
	until := os.Getenv(threads)
	if until == "" {
		return
	}
	signal.Ignore(unix.SIGTERM)
	go func() {
		for fmt.Println("started"); ; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(until); err == nil {
				os.Exit(0)
			}
		}
	}()
	runtime.LockOSThread() // in an init it is the first one
	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
}

// Such a program looks as if it had ended, and has not.
func TestWhoseFirstThreadHasEndedIsWaitedFor(t *testing.T) {
	until := filepath.Join(t.TempDir(), "end")
	h, _ := newHold(t, time.Hour)
	lines, ended := run(t, h, time.Hour, threads+"="+until+" "+os.Args[0]+"; echo goes on")
	lines.hear("started")
	time.Sleep(100 * time.Millisecond) // the first thread has ended by now
	require.NoError(t, unix.Kill(os.Getpid(), unix.SIGTERM))
	time.AfterFunc(300*time.Millisecond, func() { _ = os.WriteFile(until, nil, 0o600) })
	_, _ = ended()
	require.FileExists(t, until)
}

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
