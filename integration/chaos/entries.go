package main

import (
	"slices"
	"time"
)

// entered counts the holders who came in before the calm.
func entered(holds []*hold, calm stamp) (n int) {
	for _, h := range holds {
		if calm == 0 || h.Enter < calm {
			n++
		}
	}
	return n
}

// stays is how long somebody must stay inside after a loss of memory for a guard to matter.
const stays = time.Second / 2

// lost counts the faults by which a server lost its memory while somebody was inside a lock, and
// stayed there. In the others a guard has nothing to protect.
func lost(holds []*hold, faults []*fault) (n int) {
	for _, f := range faults {
		if f.Kind.losesMemory() && slices.ContainsFunc(holds, func(h *hold) bool {
			return h.Enter <= f.Start && h.Last >= f.Start.Add(stays)
		}) {
			n++
		}
	}
	return n
}
