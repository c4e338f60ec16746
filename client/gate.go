package client

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
)

// gate counts the calls under way that may take a lock. Close shuts it.
type gate struct {
	calls atomic.Int64 // shut is added to it once
	shut  sync.Once
	empty sync.Once
	idle  chan struct{} // closed when it is shut and no call is under way
}

const shut = math.MinInt64 / 2

// enter returns false after close; otherwise the caller calls leave.
func (g *gate) enter() bool {
	if g.calls.Add(1) > 0 {
		return true
	}
	g.leave()
	return false
}

// closed reports whether the gate is shut.
func (g *gate) closed() bool { return g.calls.Load() < 0 }

func (g *gate) leave() {
	if g.calls.Add(-1) == shut {
		g.empty.Do(func() { close(g.idle) })
	}
}

// close shuts the gate, and waits until no call is under way.
func (g *gate) close(patience context.Context) {
	g.shut.Do(func() {
		if g.calls.Add(shut) == shut {
			g.empty.Do(func() { close(g.idle) })
		}
	})
	select {
	case <-g.idle:
	case <-patience.Done():
	}
}
