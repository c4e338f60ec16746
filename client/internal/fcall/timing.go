// SPDX-License-Identifier: Apache-2.0

package fcall

import "time"

const (
	// A look at the libraries waits for a node no longer than this. It is longer than a load takes; a
	// slower one is still executed before the call that is repeated behind it.
	lookTime = 800 * time.Millisecond

	// Two looks begin at least so far apart. Longer than lookTime: one is over before the next.
	lookPause = time.Second
)

// maxAbandoned is how many calls may be given up and not answered yet. Each keeps two goroutines and a
// place in rueidis' queue of 1,024; a further one would wait there unsent.
const (
	maxAbandoned = 1024
	groupBits    = 7 // of a slot: so near ones are counted together, too
	ofGroup      = 8 // that many of them are had beside maxAbandoned of others
)

// maxStraight is up to how many calls and pipelines without an answer further calls go straight: they have room
// in that queue.
const maxStraight = 256
