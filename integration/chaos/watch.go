// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// planned reports whether a kind makes a replica the primary.
func planned(k kind) bool { return k == failoverOrder || causes[k].Splits() && k != failoverStray }

// unseen is how long a failover may have gone on before the watch sees it.
const unseen = 8 * time.Second

// watch looks for failovers that nobody planned, because a server was silent for too long. They
// count as forced ones. It also records who becomes a primary, and who is none any more.
func (s *storm) watch() {
	if s.servers.shape.replicas == 0 {
		return
	}
	before, was := s.servers.failovers.Load(), s.servers.roles()
	seen := int64(0) // the number of the planned one whose promotion was seen last
	for s.ctx.Err() == nil {
		s.rest(300 * time.Millisecond)
		count := s.servers.failovers.Load()
		is := s.servers.roles()
		// None is under way, and none was since the last look.
		latest := s.servers.failovers.Load()
		quiet := count%2 == 0 && count == before && count == latest
		before = count
		for addr, role := range is {
			if role != "master" || was[addr] != "slave" {
				continue
			}
			// A planned one promotes once. Sentinel can do so again, and depose one that goes on.
			if number := (latest + 1) / 2; !quiet && seen != number {
				seen = number
				continue
			}
			at := now()
			end := s.history.begin(fault{Kind: failoverStray, Target: addr, Start: at.Add(-unseen)})
			s.working.Go(func() {
				end(s.servers.whole())
			})
		}
		for addr, role := range is {
			if role == "" || role == was[addr] {
				continue
			}
			was[addr] = role
			s.history.record.write("fault role", addr+" "+role) // whatever was planned
		}
	}
}
