// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// history keeps the last events. It is guarded by the observer's mutex.
type history struct {
	began  time.Time
	events []event
	trace  io.Writer // gets all events; nil: nobody does
}

type event struct {
	lock string // "": it concerns all of them
	line string
}

// pid is in owner strings, between the host and the client. It is another one in each run.
var pids = strings.NewReplacer(fmt.Sprintf(":%d:", os.Getpid()), ":", fmt.Sprintf(" pid %d", os.Getpid()), "")

const (
	remembered = 2000 // events of all locks
	kept       = 120  // of these, with a violation: those of its lock, and the faults between them
)

func (h *history) add(lock, who, format string, args ...any) {
	line := pids.Replace(fmt.Sprintf("%14.6fs  %-5s %-10s ", time.Since(h.began).Seconds(), lock, who) + fmt.Sprintf(format, args...))
	if h.trace != nil {
		fmt.Fprintln(h.trace, line)
	}
	if h.events = append(h.events, event{lock, line}); len(h.events) > 2*remembered {
		h.events = slices.Delete(h.events, 0, remembered)
	}
}

// of returns what happened to a lock lately, and the faults of that time.
func (h *history) of(lock string) string {
	var lines []string
	for _, e := range slices.Backward(h.events) {
		if (e.lock == lock || e.lock == "") && len(lines) < kept {
			lines = append(lines, e.line)
		}
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n") + "\n"
}
