// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"
)

// forget strikes a server with a guard. Nobody gets a lock for a guard after a server has
// lost its memory, so the next loss comes later than that: the stretches between are when locks
// are granted, and so when there is something to lose.
func (l *lane) forget(k kind) error {
	if k.losesMemory() || k == slotMove && l.Profile == profileGuard {
		l.stretch()
	}
	if l.ctx.Err() != nil {
		return nil
	}
	do := (*lane).server
	if slices.Contains(handKinds, k) {
		do = (*lane).hand
	}
	err := do(l, k)
	if k.losesMemory() {
		l.lost = now()
	}
	return err
}

// stretch blocks until the last loss of memory is a guard ago, and a random time, so that some
// leases began long ago and some just now.
func (l *lane) stretch() {
	more := time.Second/2 + time.Duration(l.random.Float64()*float64(l.terms.Guard/2))
	calm := l.terms.Guard + more
	// Of a quorum, two minorities in a row are a majority.
	inARow := l.servers.shape.quorum() && l.Profile != profileStrict && l.random.IntN(2) == 0
	if inARow {
		x := l.random.Float64()
		calm = time.Duration(x * x * float64(calm) / 2)
	}
	l.rest(l.lost.Add(calm).Sub(now()))
}
