// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// What the clocks may differ by. Tokens of other locks are followed up to a minute: see
// "Fencing tokens" of the contract, and "A quorum" of the guarantees.
const (
	tokensBear = time.Minute
	leasesBear = time.Second
	hereBears  = time.Second
)

// trips is how many round trips are measured.
const trips = 20

// reading is a node's clock as seen from here.
type reading struct {
	ahead  time.Duration // of this machine's clock
	within time.Duration // half of the round trip: it can be wrong by that
	known  bool
}

// roundTrips measures by TIME, which also shows the clock. The shortest trip shows it best.
func (n *node) roundTrips(ctx context.Context) {
	var took []time.Duration
	for range trips {
		start := time.Now()
		said, err := n.do(ctx, "TIME").AsStrSlice()
		trip := time.Since(start)
		if !n.sees("TIME", err) || len(said) != 2 {
			return
		}
		seconds, _ := strconv.ParseInt(said[0], 10, 64)
		micros, _ := strconv.ParseInt(said[1], 10, 64)
		took = append(took, trip)
		if !n.clock.known || trip/2 < n.clock.within {
			ahead := time.Unix(seconds, micros*1000).Sub(start.Round(0).Add(trip / 2))
			n.clock = reading{ahead, trip / 2, true}
		}
	}
	slices.Sort(took)
	if median := took[len(took)/2]; median > n.opt.SlowTrip {
		n.find("round-trip", "run the clients nearer to the servers, or find out what slows the network or the server",
			"the median of %d round trips is %v", trips, median.Round(10*time.Microsecond))
	}
}

// clocks compares the clocks of all nodes with the one that is most behind, and with this machine's.
func (e *examination) clocks(context.Context) {
	var last *node
	for _, n := range e.nodes {
		if n.clock.known && (last == nil || n.clock.ahead < last.clock.ahead) {
			last = n
		}
	}
	for _, n := range e.nodes {
		if !n.clock.known {
			continue
		}
		const mend = "run NTP (chrony) on both machines, and let it slew, never step"
		apart := n.clock.ahead - last.clock.ahead
		sure := apart - n.clock.within - last.clock.within
		switch text := "its clock is %v ahead of that of %s"; {
		case sure > tokensBear:
			e.find("clock-tokens", n.addr, mend, text, apart.Round(time.Millisecond), last.addr)
		case sure > leasesBear:
			e.find("clock-leases", n.addr, mend, text, apart.Round(time.Millisecond), last.addr)
		}
		if n.clock.ahead.Abs()-n.clock.within > hereBears {
			e.find("clock-here", n.addr, "run NTP (chrony) on both machines",
				"its clock and this machine's differ by %v", n.clock.ahead.Abs().Round(time.Millisecond))
		}
	}
}
