// SPDX-License-Identifier: Apache-2.0

package redis

import "time"

// clock is a node's wall clock: it may be off, and run at another speed.
type clock struct {
	offset time.Duration
	drift  float64 // 0.001: a thousandth faster
	since  time.Time
	floor  int64 // us: it never goes back within and after a function that time went on in
}

func (c *clock) us() int64 {
	now := time.Now()
	us := now.Add(c.offset).UnixMicro()
	if c.drift != 0 {
		us += int64(c.drift * float64(now.Sub(c.since).Microseconds()))
	}
	return max(us, c.floor)
}

// step lets time go on within a function.
func (c *clock) step(d time.Duration) int64 {
	us := c.us()
	if d > 0 {
		c.floor = us + d.Microseconds()
	}
	return max(us, c.floor)
}

// SetClock makes the node's clock wrong by offset from now on, and faster by the share drift
// (0.001: a millisecond per second). Leases that a jump forward ends are ended by it, as on a real
// server.
func (n *Node) SetClock(offset time.Duration, drift float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clock = clock{offset: offset, drift: drift, since: time.Now()}
	n.armSweep()
}

// Now returns the node's time.
func (n *Node) Now() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.UnixMicro(n.clock.us())
}
