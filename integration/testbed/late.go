// SPDX-License-Identifier: Apache-2.0

package testbed

import "time"

// Worst does something again and again. The func that it returns ends that, and tells how long it took at
// the most.
func Worst(do func()) func() time.Duration {
	stop, most := make(chan struct{}), make(chan time.Duration)
	go func() {
		for longest := time.Duration(0); ; {
			select {
			case <-stop:
				most <- longest
				return
			default:
				since := time.Now()
				do()
				longest = max(longest, time.Since(since))
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-most
	}
}

// Late is how late plain timers are, at worst: on a machine that is too busy to run goroutines on time.
func Late() func() time.Duration {
	const pause = time.Millisecond
	tell := Worst(func() { <-time.After(pause) })
	return func() time.Duration { return max(0, tell()-pause) }
}
