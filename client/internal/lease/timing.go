// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"time"

	"github.com/holdfast-go/holdfast/functions"
)

// Handover is the longest lease of a lock that was handed over, until it is confirmed.
const Handover = functions.ProvisionalTTL * time.Millisecond

// The times of a lease.
const (
	// A lock that is held for longer is made known to the server's tracking. It is longer than most
	// critical sections, which then pay nothing for it.
	introduceAfter = time.Second
	// Between two looks: waiters that join change the key too. It is shorter than people notice.
	lookPause = 100 * time.Millisecond
	// After one that failed, at the most: until the next one nobody tells of a break.
	longestLook = 2 * time.Second
	// The least pause after a renewal that failed, which is a twentieth of the lease, or half of what is left of it.
	shortestRetry = time.Millisecond
)

// Margin is subtracted from the local lease. It allows for clocks that run at different speeds, and
// for the time between the check of a deadline and its effect. A hundredth and 2 ms are the figures
// of the Redlock algorithm (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/).
func Margin(length time.Duration) time.Duration { return length/100 + 2*time.Millisecond }

// Deadline is the local end of a lease that was asked for at sent: before the server's end,
// whenever the server ran the request.
func Deadline(sent time.Time, length time.Duration) time.Time {
	return sent.Add(length - Margin(length))
}

// Since is how long ago then was, by the monotonic clock or by the wall clock, whichever says more. The
// monotonic clock stands still while a machine is suspended.
func Since(now, then time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

// At is then as far from now by the monotonic clock as it is by the one that says that it is longer ago, or nearer.
func At(now, then time.Time) time.Time { return now.Add(-Since(now, then)) }

// Past reports whether deadline has passed, by either clock. It is asked more often than anything else.
func Past(now, deadline time.Time) bool {
	return !now.Before(deadline) || !now.Round(0).Before(deadline.Round(0))
}

func retry(length time.Duration) time.Duration { return max(length/20, shortestRetry) }

func due(now, at time.Time) bool { return !at.IsZero() && !now.Before(at) }

// earlier is the earlier one of two times, of which the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
