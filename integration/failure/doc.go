// Package failure tests the client against real faults: processes killed and paused, connections
// stalled and cut, replies and messages lost, failovers, moved slots, full memory, libraries replaced
// and deleted, rights and passwords taken away, clocks stepped, certificates renewed. It has tests
// only.
package failure
