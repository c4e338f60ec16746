// SPDX-License-Identifier: Apache-2.0

//go:build unix

package supervise

import (
	"context"
	"math"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

type until time.Time

func (until) Context() context.Context   { return context.Background() }
func (u until) Remaining() time.Duration { return max(0, time.Until(time.Time(u))) }

// On a host that is so loaded that each look comes late, the command of a silent server is asked to stop before
// the lease ends all the same: to have stood still is an excuse once.
func TestALoadedHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, after := time.Now(), time.Duration(0)
		nobody := &process{cmd: &exec.Cmd{Process: &os.Process{Pid: math.MaxInt32}}}
		e := &ending{hold: until(began.Add(3 * time.Second)), process: nobody, grace: time.Second, notice: time.Second,
			say: func(string) { after = time.Since(began) }, due: began}
		for e.wake(); e.why == nil; e.wake() {
			e.look()
			wait := e.next()
			e.due = time.Now().Add(wait)
			time.Sleep(wait + 3*late/2)
		}
		require.ErrorIs(t, e.why, ErrSilent)
		require.Less(t, after, 2800*time.Millisecond)
	})
}

// While enough is left there is nothing to excuse, so the excuse is there when it is needed.
func TestStoodStillAfterALateBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		e := &ending{hold: until(began.Add(3 * time.Second)), notice: time.Second, due: began}
		for _, at := range []time.Duration{2 * late, 2300 * time.Millisecond} { // SIGSTOP, and SIGCONT
			time.Sleep(time.Until(began.Add(at)))
			e.wake()
			e.look()
			require.NoError(t, e.why)
			e.due = time.Now().Add(e.next())
		}
	})
}

// handed is a lock that was handed over: it is good for little until its first renewal.
type handed struct {
	until
	renewed time.Time
}

func (h handed) Remaining() time.Duration {
	if time.Now().Before(h.renewed) {
		return time.Until(h.renewed) + time.Second
	}
	return h.until.Remaining()
}

// SIGTERM comes as early before the end of the lease as of one that was free.
func TestTheNoticeOfALockThatWasHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, after := time.Now(), time.Duration(0)
		nobody := &process{cmd: &exec.Cmd{Process: &os.Process{Pid: math.MaxInt32}}}
		e := &ending{hold: handed{until(began.Add(30 * time.Second)), began.Add(600 * time.Millisecond)}, process: nobody,
			grace: 5 * time.Second, say: func(string) { after = time.Since(began) }, due: began}
		for e.wake(); e.why == nil; e.wake() {
			e.look()
			wait := e.next()
			e.due = time.Now().Add(wait)
			time.Sleep(wait)
		}
		require.Equal(t, 25*time.Second, after)
	})
}
