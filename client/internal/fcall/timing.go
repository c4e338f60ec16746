package fcall

import "time"

const (
	// A load waits for a node no longer than this. It is longer than a load takes; a slower one is
	// still executed before the call that is repeated behind it.
	loadTime = 800 * time.Millisecond

	// Two loads begin at least so far apart. Longer than loadTime: one is over before the next.
	loadPause = time.Second

	// The question for the version, after a call has failed, takes at most this. Shorter than
	// loadTime.
	explains = 300 * time.Millisecond
)

// maxAbandoned is how many calls may be given up and not answered yet. Each keeps two goroutines and a
// place in rueidis' queue of 1,024; a further one would wait there unsent.
const maxAbandoned = 1024
