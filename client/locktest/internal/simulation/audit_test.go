package simulation

import (
	"testing"
	"testing/synctest"
	"time"
)

// A holder whose lock is broken in peace, long after it entered, has a lease's time to learn of that.
func TestALossIsNoticedWithinALeaseOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObserver(1, "", profile{}, []string{"x"})
		l := o.locks["x"]
		alive := make(chan struct{})
		h := &holder{process: &process{label: "p1"}, who: "p1", name: "x", owner: "a", done: alive}
		o.enter(h)
		l.owner = "a"
		after := func(d time.Duration, broken int) {
			t.Helper()
			time.Sleep(d)
			if o.audit(); o.report.Sum(Violations) != broken {
				t.Fatalf("%d violations, want %d", o.report.Sum(Violations), broken)
			}
		}
		after(time.Minute, 0)
		l.owner = "b"
		after(0, 0)
		after(noticed-time.Second, 0)
		l.owner = "a" // it has it again
		after(0, 0)
		l.owner = ""
		after(0, 0)
		after(noticed-time.Second, 0)
		after(time.Second, 1)
	})
}
