// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
)

// inflight counts calls under way: those that may take a lock, which Close and Shutdown shut, and releases.
type inflight struct {
	calls atomic.Int64 // shut is added to it once
	shut  sync.Once
	idle  context.Context // ends when it is shut and no call is under way
	empty context.CancelFunc
}

const shut = math.MinInt64 / 2

// enter returns false after close; otherwise the caller calls leave.
func (f *inflight) enter() bool {
	if f.calls.Add(1) > 0 {
		return true
	}
	f.leave()
	return false
}

func (f *inflight) leave() {
	if f.calls.Add(-1) == shut {
		f.empty()
	}
}

// close shuts it, and waits until no call is under way.
func (f *inflight) close(patience context.Context) {
	f.shut.Do(func() {
		f.calls.Add(shut + 1) // as one more call
		f.leave()
	})
	select {
	case <-f.idle.Done():
	case <-patience.Done():
	}
}
