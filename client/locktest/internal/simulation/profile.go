// SPDX-License-Identifier: Apache-2.0

package simulation

import "time"

// profile weights what is rare. The zero value is the normal mix.
type profile struct {
	kind       kind
	oneLock    bool
	busy       bool          // no hours of peace
	length     time.Duration // of the first phase of work; 0: at random
	calm       time.Duration // between bursts of faults; 0: at random
	early      bool          // keys are deleted in the millisecond that PEXPIREAT names
	step       time.Duration // time goes on within functions
	lease      time.Duration // most locks have this one
	long       bool          // many locks are held for longer than that
	replicated bool          // locks count when all replicas have them
	guard      time.Duration // that all ask for; no lease is longer than half of it
	deeds      map[string]int
	faults     map[string]int
	onlyFaults bool          // no others than those
	values     bool          // all names are for values
	brief      bool          // few actors, short faults; see brief.go
	calmEnd    time.Duration // no fault begins in the last part of the work
}

// level is what locks are kept by.
func (p profile) level() string {
	switch {
	case p.kind == onQuorum:
		return "quorum"
	case p.replicated:
		return "replicated"
	case p.guard > 0:
		return "guarded"
	}
	return "default"
}

// profiles are the mixes for defects that the normal one finds too seldom.
var profiles = map[string]profile{
	"": {},

	"replicated": {kind: onCluster, replicated: true, deeds: map[string]int{"outrun": 0},
		faults: map[string]int{"graceful failover": 5, "forced failover": 20, "restart": 0}},
	// No slot moves: that takes no memory along, as the guarantees say.
	"guarded": {kind: onCluster, busy: true, guard: 14 * time.Second, length: 3 * time.Minute, calm: 20 * time.Second,
		deeds: map[string]int{"stranger": 0, "plain": 0}, onlyFaults: true,
		faults: map[string]int{"forced failover": 20, "restart": 20, "graceful failover": 3, "stall": 30, "silence": 15, "lost replies": 5, "pause": 3,
			"flush functions": 2}},
	// No lease is longer than the guard, less what the steps of a clock and the drift come to.
	"quorum": {kind: onQuorum, busy: true, guard: 8 * time.Second, length: 50 * time.Second, calm: 22 * time.Second,
		deeds: map[string]int{"stranger": 0, "plain": 0, "share": 0, "end": 2}, onlyFaults: true,
		faults: map[string]int{"restarts": 30, "pauses": 10, "refusal": 8, "flush functions": 4, "del at one": 4, "step": 4,
			"stall": 20, "silence": 8, "delay": 8, "reset": 8, "refuse": 8, "lost replies": 10, "close": 4, "stop": 4}},
	"slow functions": {kind: onSingle, oneLock: true, busy: true, step: 3 * time.Millisecond, lease: 10 * time.Millisecond, onlyFaults: true},
	"early expiry":   {busy: true, early: true},
	"values":         {busy: true, values: true},
	"deaf": {busy: true, length: 200 * time.Second, calm: 40 * time.Second, lease: 30 * time.Second, long: true, onlyFaults: true,
		faults: map[string]int{"deaf": 1}, deeds: map[string]int{"break": 0, "end": 0, "all": 0}},
	"refused releases": {kind: onSingle, busy: true, onlyFaults: true, faults: map[string]int{"loss and refusal": 1}},
}
