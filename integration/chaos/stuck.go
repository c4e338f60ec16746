// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/integration/oracle"
)

// idle is how long a lock may stay free in the calm while somebody waits for it: a hand-off whose
// message is lost costs a question of the waiter (1.5 s), and one to the dead 2 s. With a guard
// nobody gets it for as long as that, too.
const idle = 6 * time.Second

// checkStuck looks for a lock that nobody had, though somebody waited for it all that time, in the
// calm: from the first time that it was had then. may is how long.
func checkStuck(calls []*call, holds []*hold, calm stamp, may time.Duration) (found []violation) {
	if calm == 0 {
		return nil
	}
	waits := map[string][]*call{}
	for _, c := range calls {
		if c.Call == "acquire" && c.End > calm {
			waits[c.Lock] = append(waits[c.Lock], c)
		}
	}
	for name, list := range oracle.ByLock(holds) {
		list = slices.DeleteFunc(slices.Clone(list), func(h *hold) bool { return h.End < calm })
		if len(list) == 0 {
			continue
		}
		free := list[0].End
		for _, h := range list[1:] {
			if gap := h.Enter.Sub(free); gap > may {
				for _, c := range waits[name] {
					if c.Start <= free && c.End >= free.Add(may) {
						found = append(found, wrong("stuck", name, free, "nobody had it for %v, while %s.%d waited", gap, c.Process,
							c.Worker))
						break
					}
				}
			}
			free = max(free, h.End)
		}
	}
	return found
}
