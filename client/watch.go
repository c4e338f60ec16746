// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"iter"
	"time"
)

// The pauses between two questions: of the memory, where the server tells of changes, and else of the
// server.
const (
	watchedPause   = 50 * time.Millisecond
	unwatchedPause = time.Second

	// A server that does not answer for so long is an outage for Watch.
	longestQuestion = 2 * time.Second
)

// Watch yields how the lock stands, at once, and again whenever somebody else has it, more or fewer, or
// nobody: for those who only want to know who leads. Changes that follow each other within a moment can
// be seen as one. With client-side caching (see Open) a change is seen within 50 ms, and asking costs a
// round trip for each change and each renewal, and one a second where nothing else is asked of the
// server; without it the server is asked every second.
//
// It ends when ctx ends, without an error. An outage of more than two seconds is yielded as
// ErrUnreachable, once, and how the lock stands after it in any case. Any other error is yielded, and is
// the end. It blocks the caller between two changes.
func (c *Client) Watch(ctx context.Context, name string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		var last Info
		var down time.Time // when the first of the last questions was asked that failed
		known, fails, out := false, false, false
		for ctx.Err() == nil {
			if !fails {
				down = time.Now()
			}
			asking, cancel := context.WithTimeout(ctx, longestQuestion)
			info, err := c.InspectCached(asking, name)
			cancel()
			if c.closing.Err() != nil {
				err = opError("watch", name, ErrClosed)
			}
			fails = errors.Is(err, ErrUnreachable)
			switch {
			case ctx.Err() != nil:
				return
			case fails && time.Since(down) < longestQuestion, errors.Is(err, ErrTimeout): // or suspended before it asked
			case fails:
				if !out && !yield(Info{Name: name}, err) {
					return
				}
				known, out = false, true
			case err != nil:
				yield(Info{Name: name}, err)
				return
			case !known || info.Held != last.Held || info.Fence != last.Fence && !c.backend.Voting() || info.Holds != last.Holds ||
				info.Holder.Owner != last.Holder.Owner:
				if !yield(info, nil) {
					return
				}
				last, known, out = info, true, false
			}
			pause := unwatchedPause
			if c.cache.On() && !out {
				pause = watchedPause
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			case <-c.closing.Done(): // the next question says so
			}
		}
	}
}
