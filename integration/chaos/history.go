// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/oracle"
)

// call is one call of a client, as its process saw it.
type call struct {
	Process string
	ID      int64 // within the process
	Worker  int
	Call    string // acquire, try, renew, release, break
	Lock    string
	Level   oracle.Level
	Start   stamp
	End     stamp         // 0: there was no answer, because the process was killed
	Limit   time.Duration // it must be over within
	Outcome string
	Token   int64
}

// hold is a lock as its holder saw it.
type hold = oracle.Hold

// fault is one fault of a schedule.
type fault struct {
	Kind   kind
	Target string // a process, a server, or both
	Lock   string // the only lock that it concerns; "": all
	Detail string
	Start  stamp
	End    stamp // when all of its effects on servers were over; forever while it lasts
	Error  string
}

// history is all that is known of a round. It is safe for concurrent use.
type history struct {
	record *record

	mu       sync.Mutex
	calls    []*call
	holds    []*hold
	faults   []*fault
	troubles []violation // found by a process itself, or by the harness
	calm     stamp       // when the storm was over
	cycled   map[string]bool
	killed   map[string]bool // processes
}

// trouble notes a violation that needs no checker.
func (h *history) trouble(v violation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.troubles = append(h.troubles, v)
	h.record.write("violation", v)
}

// begin notes a fault. The func that it returns ends it.
func (h *history) begin(f fault) (end func(error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	noted := &f
	noted.End = forever
	if noted.Start == 0 {
		noted.Start = now()
	}
	h.faults = append(h.faults, noted)
	h.record.write("fault", noted)
	return func(err error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if err != nil {
			noted.Error = err.Error()
		}
		noted.End = now()
		h.record.write("fault over", noted)
	}
}
