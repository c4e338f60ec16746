// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// The times and bounds of the queues.
const (
	shards = 64
	// So many keys that were refused are remembered.
	mostRefused = 4096

	// Inside a process a lock is passed on at most so often in a row, and for so long, before other
	// processes get their turn: a hand-over at the server takes a tenth of that. This is lock cohorting
	// (Dice, Marathe, Shavit: Lock Cohorting, PPoPP 2012) applied to a lease.
	passRun   = 1000
	passSlice = 2 * time.Millisecond

	// How long a line outlives the last lease.
	lineTime = time.Minute

	// Between two questions of a waiter that can be notified: less than lease.Handover, so that a dead
	// one is noticed by the next.
	lookPause = time.Second
	// While nothing changes each is twice as long, up to this: where turns are long, the library tells the
	// next one to look.
	longestLook = 8 * time.Second
	// Such pauses end in time with this.
	beat = 20 * time.Millisecond
	// Of one that cannot, or of a lock that no message tells of.
	pollPause = 50 * time.Millisecond
	// Of one that shares its owner string with others.
	sharedPause = 250 * time.Millisecond
	// After a call that failed, and with a jitter of four times that; or of an eighth of the outage, to lookPause.
	failPause = 20 * time.Millisecond
	// Behind a minimum or a guard, which a break can end, of one that can be notified: the library believes in
	// it for 20 s. Who cannot looks once in lookPause, less than lease.Handover.
	longestSleep = 12 * time.Second

	// How long a call must be without an answer for the end of a wait to be the server's doing, and how
	// long the first subscription is waited for.
	silence = 100 * time.Millisecond
	// So many answers in a row that find no subscriber are logged.
	unheardOf = 4

	// For so long after an answer a try is refused from memory: no longer than an outage may go unseen.
	memory = time.Second
)
