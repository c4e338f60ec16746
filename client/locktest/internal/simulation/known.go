// SPDX-License-Identifier: Apache-2.0

package simulation

import "time"

// What is known not to hold, and is counted instead of failing. Each has a bound.
const (
	// A lease that was shortened (MinHold, RenewFor), or that is shorter than the pause between two
	// questions of a waiter, ends without those in line knowing: they ask within this.
	waitersAsk = 1600 * time.Millisecond
	// those whose line was deleted ask within this, if they have waited for long
	waitersSleep = 12100 * time.Millisecond
	// a first call whose connection broke while nobody used it is repeated after this at the latest
	repeats = 100 * time.Millisecond
)
