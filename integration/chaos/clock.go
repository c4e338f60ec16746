package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// stamp is a time in nanoseconds by the machine's monotonic clock, which all its processes share.
type stamp int64

// forever is later than everything.
const forever = stamp(1 << 62)

func now() stamp {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(fmt.Sprintf("chaos: the monotonic clock: %v", err)) // every Unix has it
	}
	return stamp(t.Nano())
}

func (s stamp) add(d time.Duration) stamp { return s + stamp(d) }

func (s stamp) sub(t stamp) time.Duration { return time.Duration(s - t) }
