// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/integration/oracle"
)

// stamp is a time by the machine's monotonic clock, which all its processes share.
type stamp = oracle.Stamp

// forever is later than everything.
const forever = oracle.Forever

func now() stamp {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(fmt.Sprintf("chaos: the monotonic clock: %v", err)) // every Unix has it
	}
	return stamp(t.Nano())
}
