// SPDX-License-Identifier: Apache-2.0

//go:build unix

package supervise_test

import (
	"context"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/client"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/supervise"
)

// hold is a lock of which the test says what becomes of it.
type hold struct {
	ctx  context.Context
	mu   sync.Mutex
	ends time.Time
}

func newHold(t *testing.T, lease time.Duration) (*hold, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	t.Cleanup(func() { cancel(nil) })
	return &hold{ctx: ctx, ends: time.Now().Add(lease)}, cancel
}

func (h *hold) Context() context.Context { return h.ctx }

func (h *hold) Remaining() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, time.Until(h.ends))
}

// silent leaves a minute of the lease, which is less than the time to stop in, and lets a signal make Run look.
func (h *hold) silent(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	h.ends = time.Now().Add(time.Minute)
	h.mu.Unlock()
	require.NoError(t, unix.Kill(os.Getpid(), unix.SIGWINCH))
}

// run runs a shell's script, and returns what it prints, and what becomes of it.
func run(t *testing.T, h *hold, grace time.Duration, script string) (*lineReader, func() (supervise.Result, []string)) {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	var said []string
	c := &supervise.Command{Args: []string{"/bin/sh", "-c", script}, Stdout: write, Grace: grace,
		Say: func(line string) { said = append(said, line) }}
	done := make(chan supervise.Result, 1)
	go func() {
		defer write.Close()
		result, err := c.Run(h, supervise.Catch())
		if err != nil {
			t.Error(err)
		}
		done <- result
	}()
	return &lineReader{t, read}, func() (supervise.Result, []string) {
		select {
		case r := <-done:
			return r, said
		case <-time.After(time.Minute):
			require.FailNow(t, "it does not end")
			return supervise.Result{}, nil
		}
	}
}

type lineReader struct {
	t    *testing.T
	from *os.File
}

func (l *lineReader) hear(want string) {
	l.t.Helper()
	require.NoError(l.t, l.from.SetReadDeadline(time.Now().Add(time.Minute)))
	got := make([]byte, len(want)+1)
	_, err := io.ReadFull(l.from, got)
	require.NoError(l.t, err)
	require.Equal(l.t, want+"\n", string(got))
}

const stubborn = `trap "echo TERM" TERM; echo started; while :; do sleep 1000 & wait; done`

var errTaken = &client.LostError{Name: "a", Err: client.ErrTaken}

func TestALostLock(t *testing.T) {
	h, lose := newHold(t, time.Hour)
	lines, ended := run(t, h, 3*time.Second, stubborn)
	lines.hear("started")
	lose(errTaken)
	lines.hear("TERM")
	result, said := ended()
	require.Equal(t, 137, result.Code)
	require.ErrorIs(t, result.Lost, client.ErrTaken)
	require.Len(t, said, 2)
}

// Who reads standard error may have stopped, so that a line to it is never written.
func TestALostLockThatNobodyIsToldOf(t *testing.T) {
	h, lose := newHold(t, time.Hour)
	c := &supervise.Command{Args: []string{"/bin/sh", "-c", `trap "" TERM; sleep 1000 & wait; wait`}, Grace: 100 * time.Millisecond,
		Say: func(string) { select {} }}
	lose(errTaken)
	done := make(chan supervise.Result, 1)
	go func() {
		result, err := c.Run(h, supervise.Catch())
		if err != nil {
			t.Error(err)
		}
		done <- result
	}()
	select {
	case result := <-done:
		require.ErrorIs(t, result.Lost, client.ErrTaken)
	case <-time.After(20 * time.Second):
		require.FailNow(t, "the command runs on beside the next holder")
	}
}

func TestAnExpiredLockLeavesNoGrace(t *testing.T) {
	h, lose := newHold(t, time.Hour)
	lines, ended := run(t, h, time.Hour, stubborn)
	lines.hear("started")
	lose(&client.LostError{Name: "a", Err: client.ErrExpired})
	result, _ := ended()
	require.Equal(t, 137, result.Code)
	require.ErrorIs(t, result.Lost, client.ErrExpired)
}

func TestASilentServer(t *testing.T) {
	h, lose := newHold(t, time.Hour)
	lines, ended := run(t, h, time.Hour, stubborn)
	lines.hear("started")
	h.silent(t)
	lines.hear("TERM")
	lose(&client.LostError{Name: "a", Err: client.ErrExpired})
	result, said := ended()
	require.Equal(t, 137, result.Code)
	require.ErrorIs(t, result.Lost, client.ErrExpired)
	require.Contains(t, said[0], supervise.ErrSilent.Error())
}

func TestACommandThatStopsInTimeUnderASilentServer(t *testing.T) {
	h, _ := newHold(t, time.Hour)
	lines, ended := run(t, h, time.Hour, `trap "echo TERM; exit 3" TERM; echo started; sleep 1000 & wait`)
	lines.hear("started")
	h.silent(t)
	lines.hear("TERM")
	result, _ := ended()
	require.Equal(t, 3, result.Code)
	require.ErrorIs(t, result.Lost, supervise.ErrSilent)
}

func TestALockLostAsTheCommandEnds(t *testing.T) {
	h, lose := newHold(t, time.Hour)
	lose(errTaken)
	_, ended := run(t, h, time.Hour, "exit 0")
	result, said := ended()
	require.ErrorIs(t, result.Lost, client.ErrTaken)
	require.NotEmpty(t, said)
}

func TestACommandThatCannotStart(t *testing.T) {
	for path, code := range map[string]int{"/no/such": 127, "/": 126, "no-such-command": 127} {
		c := &supervise.Command{Args: []string{path}}
		h, _ := newHold(t, time.Hour)
		_, err := c.Run(h, supervise.Catch())
		for _, err := range []error{c.Find(), err} {
			require.Error(t, err, path)
			require.Equal(t, code, supervise.StartCode(err), path)
		}
	}
}
