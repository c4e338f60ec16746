// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/holdfast-go/holdfast/integration/oracle"

// causes are what kinds of faults do that may take a lock from its holder. The oracle says at which
// level each of them does. A kind that is not here leaves the holder the only one at each level.
var causes = map[kind]oracle.Cause{
	lockBreak: oracle.Broken,
	keyDelete: oracle.Deleted,
	// Here a holder may have the votes of a bare majority, for want of a way to the rest; and a vote is asked
	// for again a lease later, so two such faults in a row are of a majority.
	voteDelete: oracle.Deleted,

	// A replica that forgets is not the primary before it has synchronised here.
	serverForget:   oracle.Forgotten,
	majorityForget: oracle.Forgotten,
	slotMove:       oracle.Moved,

	// The old primary is dead, or hears of the new one within milliseconds.
	failoverForce: oracle.Unreplicated,
	failoverTake:  oracle.Unreplicated,
	failoverKill:  oracle.Unreplicated,
	failoverStale: oracle.Unreplicated,

	// Sentinel promotes a replica without asking the primary to stop, and tells it seconds later; nothing
	// here has min-replicas-to-write.
	failoverAsk:   oracle.DeposedGrants,
	failoverStray: oracle.DeposedGrants,
	failoverPause: oracle.PausedGrants,

	// A Cluster's primary that hears nobody stops after cluster-node-timeout, before its replica is promoted,
	// and one that is not heard hears of that within milliseconds. One under Sentinel goes on, and so does
	// that of a Cluster which hears the others, but not its replica.
	cutOff:       oracle.Deposed,
	cutDeaf:      oracle.Deposed,
	cutMute:      oracle.Deposed,
	cutHeir:      oracle.DeposedGrants,
	sentinelOff:  oracle.DeposedGrants,
	sentinelDeaf: oracle.DeposedGrants,
	sentinelMute: oracle.DeposedGrants,
	sentinelSide: oracle.DeposedGrants,
}

// excuses reports whether a kind may let in a second holder at a level.
func (k kind) excuses(l oracle.Level) bool { return causes[k].Verdict(l) == oracle.Second }

// waits reports whether all may have to wait because of a fault of a quorum: for a guard, or for a server.
func (k kind) waits() bool {
	switch k {
	case libReplace, libFlush, memoryFull, rightsGone, majorityPause, majorityRestart, majorityForget:
		return true
	}
	return false
}

// losesMemory reports whether a server remembers anew after a fault, so that nobody gets a guarded
// lock from it for a while.
func (k kind) losesMemory() bool {
	switch k {
	case libReplace, libFlush, serverRestart, failoverOrder, majorityRestart:
		return true
	}
	return causes[k].Forgets()
}
