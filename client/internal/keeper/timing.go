// SPDX-License-Identifier: Apache-2.0

package keeper

import "time"

// The times and bounds of the keeper.
const (
	// How often the scheduler wakes while there are leases, and by how much the wall clock must have
	// run ahead for a suspension of the machine: it is noticed within the one, and the other is longer
	// than a clock is slewed in that time.
	glance    = 5 * time.Second
	suspended = time.Second / 2

	batchSize   = 256 // locks of one pipeline
	laneFlights = 8   // pipelines of a lane under way at once
	slotBits    = 10  // Cluster: neighbouring slots are mostly on one node, and share a lane

	// A renewal that prolongs nothing: the server keeps the longer lease.
	shortest = time.Millisecond

	// What is undone is tried again after these pauses, each twice the one before.
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
	// A pipeline of it, or of questions of those who wait, waits at least for so long.
	pipeWait = time.Second
	// How long a release waits whose context is over, and an Undo for the answer to a question: less than what
	// Close gives to both.
	overWait = 250 * time.Millisecond

	// It is longer than rueidis waits for an answer by default: 10 s, and as long to notice.
	patientLease = 25 * time.Second
)

// never is after all that is due.
var never = time.Unix(1<<40, 0)

// again is when an Undo is repeated although it was answered. A call of the owner that had no answer
// can be as late as a network holds a packet up, and a Cluster or Sentinel takes seconds to tell a
// deposed primary.
var again = [...]time.Duration{time.Second, 2 * time.Second, 7 * time.Second, 20 * time.Second}
