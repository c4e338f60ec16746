// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"
)

// lateness is what a call may take beyond its limit: the machine is busy.
const lateness = 2 * time.Second

// checkHangs looks for calls that did not return in time. The time in which their process was
// paused does not count, and a process that was killed does not answer.
func checkHangs(calls []*call, faults []*fault, killed map[string]bool) (found []violation) {
	pauses := map[string][]*fault{}
	for _, f := range faults {
		if f.Kind == clientPause {
			pauses[f.Target] = append(pauses[f.Target], f)
		}
	}
	for _, c := range calls {
		if c.End == 0 {
			if !killed[c.Process] {
				found = append(found, wrong("hang", c.Lock, c.Start, "%s.%d: %s never returned", c.Process, c.Worker, c.Call))
			}
			continue
		}
		took := c.End.Sub(c.Start)
		for _, p := range pauses[c.Process] {
			if paused := min(p.End, c.End).Sub(max(p.Start, c.Start)); paused > 0 {
				took -= paused
			}
		}
		if took > c.Limit+lateness {
			found = append(found, wrong("hang", c.Lock, c.Start, "%s.%d: %s took %v, and had %v: %s",
				c.Process, c.Worker, c.Call, took, c.Limit, c.Outcome))
		}
	}
	return found
}
