// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"
	"sync/atomic"
)

// gate is where the workers of a process stand while it is to rest.
type gate struct {
	shut     sync.RWMutex // held for writing while they stand
	standing atomic.Int64
}

// pass blocks while the gate is shut.
func (g *gate) pass() {
	g.standing.Add(1)
	g.shut.RLock()
	defer g.shut.RUnlock()
	g.standing.Add(-1)
}
