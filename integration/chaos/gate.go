package main

import (
	"context"
	"sync"
)

// gate is where the workers of a process stand while it is to rest.
type gate struct {
	mu       sync.Mutex
	open     chan struct{} // closed while workers may pass
	standing int
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

// shut makes workers stand, each when it has done its turn.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open)
}

// pass blocks while the gate is shut.
func (g *gate) pass(ctx context.Context) {
	g.mu.Lock()
	open := g.open
	g.standing++
	g.mu.Unlock()
	select {
	case <-open:
	case <-ctx.Done():
	}
	g.mu.Lock()
	g.standing--
	g.mu.Unlock()
}

// waiting is how many workers stand there.
func (g *gate) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.standing
}
