package main

import (
	"slices"
	"time"
)

// verdict is what a fault may do to a lock that somebody holds.
type verdict int

const (
	nothing      verdict = iota // its holder stays the only one
	pause                       // the same, but all may have to wait for a guard, or for a server
	secondHolder                // a second holder may be let in, with a higher token
	afterLoss                   // as secondHolder, within a guard of a fault that loses locks
	never                       // it does not happen there
)

// admits is what docs/guarantees.md admits for each kind of fault, at the default level, at the
// level Guard, at the level Replicas with all replicas, and in a quorum. It is the only place that
// decides it. Pauses are of no matter but in a quorum, where a minority must cost none.
var admits = map[kind]struct{ byDefault, withGuard, withReplicas, inQuorum verdict }{
	// "Clients and messages": the levels are alike, nobody is let in beside a live context.
	netPartition: {nothing, nothing, nothing, nothing},
	netRequests:  {nothing, nothing, nothing, nothing},
	netReplies:   {nothing, nothing, nothing, nothing},
	netSilence:   {nothing, nothing, nothing, nothing},
	netDelay:     {nothing, nothing, nothing, nothing},
	netReset:     {nothing, nothing, nothing, nothing},
	netLostReply: {nothing, nothing, nothing, nothing},
	clientPause:  {nothing, nothing, nothing, nothing},
	clientKill:   {nothing, nothing, nothing, nothing},
	connKill:     {nothing, nothing, nothing, nothing},
	pubsubKill:   {nothing, nothing, nothing, nothing},
	replicaKill:  {nothing, nothing, nothing, never},

	// "FUNCTION FLUSH": locks stay. FUNCTION LOAD REPLACE is safe while locks are held. But the
	// memory begins anew, and here at all servers.
	libReplace: {nothing, nothing, nothing, pause},
	libFlush:   {nothing, nothing, nothing, pause},

	// "the memory is full", "rights are taken away": nobody gets a lock meanwhile.
	memoryFull: {nothing, nothing, nothing, pause},
	rightsGone: {nothing, nothing, nothing, pause},

	// "the key is deleted or evicted, or the lock is broken"
	lockBreak: {secondHolder, secondHolder, secondHolder, secondHolder},
	keyDelete: {secondHolder, secondHolder, secondHolder, secondHolder},
	// "the key is deleted or evicted at a minority": nothing is lost where the holder has the votes of
	// the others. Here it may have those of a bare majority, for want of a way to the rest; and a
	// vote is asked for again a lease later, so two such faults in a row are of a majority.
	voteDelete: {never, never, never, secondHolder},

	// A server that was away for a moment, or that has everything on disk, has forgotten nothing.
	serverPause:   {nothing, nothing, nothing, nothing},
	serverRestart: {nothing, nothing, nothing, nothing},
	// "a server restarts with an older memory, or none, and is the primary": everything is
	// forgotten. A replica that does is not the primary before it has synchronised here. Of a
	// quorum it is one server, or two: "a server comes back empty, or from an older memory, or
	// another one takes its place".
	serverForget:   {secondHolder, nothing, secondHolder, nothing},
	replicaRestart: {nothing, nothing, nothing, never},

	// "a majority is lost": nobody gets a lock until it is back, and has remembered for a guard.
	majorityPause:   {never, never, never, pause},
	majorityRestart: {never, never, never, pause},
	majorityForget:  {never, never, never, pause},

	// "the clock of a minority is wrong by any time".
	clockWrong: {never, never, never, nothing},
	// "the server's clock is stepped forward", and of a quorum "its clock is stepped forward, which ends
	// leases there", as voteDelete does.
	clockForward: {secondHolder, secondHolder, secondHolder, secondHolder},
	// "the server's clock is stepped back". Of a quorum it remembers too little then.
	clockBack: {nothing, never, nothing, pause},

	// "failover in good order", "a slot moves to another node": no memory moves with it.
	failoverOrder: {nothing, nothing, nothing, never},
	slotMove:      {nothing, afterLoss, nothing, never},

	// "forced failover, or the primary is killed and a replica promoted". The old primary is dead,
	// or hears of the new one within milliseconds.
	failoverForce: {secondHolder, nothing, nothing, never},
	failoverTake:  {secondHolder, nothing, nothing, never},
	failoverKill:  {secondHolder, nothing, nothing, never},
	failoverStale: {secondHolder, nothing, nothing, never},

	// "split brain": Sentinel promotes a replica without asking the primary to stop, and tells it
	// seconds later; nothing here has min-replicas-to-write. "a primary was paused, and is deposed
	// meanwhile".
	failoverAsk:   {secondHolder, secondHolder, nothing, never},
	failoverPause: {secondHolder, secondHolder, nothing, never},
	failoverStray: {secondHolder, secondHolder, nothing, never},

	// "split brain" again. A Cluster's primary that hears nobody stops after cluster-node-timeout, before
	// its replica is promoted, and one that is not heard hears of that within milliseconds. One under
	// Sentinel goes on, and so does that of a Cluster which hears the others, but not its replica.
	cutOff:       {secondHolder, nothing, nothing, never},
	cutDeaf:      {secondHolder, nothing, nothing, never},
	cutMute:      {secondHolder, nothing, nothing, never},
	cutHeir:      {secondHolder, secondHolder, nothing, never},
	sentinelOff:  {secondHolder, secondHolder, nothing, never},
	sentinelDeaf: {secondHolder, secondHolder, nothing, never},
	sentinelMute: {secondHolder, secondHolder, nothing, never},
	sentinelSide: {secondHolder, secondHolder, nothing, never},
	// Nobody is promoted because of what one other server says.
	cutPair: {nothing, nothing, nothing, never},
}

// verdict is what the table says for a level.
func (k kind) verdict(level string) verdict {
	v := admits[k]
	switch level {
	case levelGuard:
		return v.withGuard
	case levelReplicas:
		return v.withReplicas
	case levelQuorum:
		return v.inQuorum
	}
	return v.byDefault
}

// losesLocks reports whether a server may have forgotten locks: what the default level admits to a
// fault that is not of a hand.
func (k kind) losesLocks() bool { return k == serverForget || splits[k] }

// losesMemory reports whether a server remembers anew after a fault, so that nobody gets a guarded
// lock from it for a while.
func (k kind) losesMemory() bool {
	switch k {
	case libReplace, libFlush, serverRestart, failoverOrder, majorityRestart, majorityForget:
		return true
	}
	return k.losesLocks()
}

// splits are the faults with which a primary that is none any more, or that comes back empty and
// takes itself for one, "goes on granting" at the default level. Whom it grants a lock is beside
// the holder at the other primary, whatever that one's level is.
var splits = map[kind]bool{
	failoverForce: true, failoverTake: true, failoverAsk: true, failoverKill: true,
	failoverStale: true, failoverPause: true, failoverStray: true,
	cutOff: true, cutDeaf: true, cutMute: true, cutHeir: true,
	sentinelOff: true, sentinelDeaf: true, sentinelMute: true, sentinelSide: true,
}

// aftermath is how long after the end of a fault a lock that was granted then may still be lost:
// requests that were on their way reach a server whose grants do not count any more.
const aftermath = time.Second

// excuse returns the fault for which h may have met another holder at a moment; nil if there is
// none. It must have been under way between the grant and then.
func excuse(h *hold, at stamp, faults []*fault) *fault {
	for _, f := range faults {
		if !f.during(h, at) {
			continue
		}
		switch f.Kind.verdict(h.Level) {
		case secondHolder:
			return f
		case afterLoss:
			if slices.ContainsFunc(faults, f.soonAfter) {
				return f
			}
		}
	}
	return nil
}

// soonAfter reports whether locks were lost within a guard before f.
func (f *fault) soonAfter(loss *fault) bool {
	if !loss.Kind.losesLocks() || loss.Start > f.End {
		return false
	}
	return loss.End == forever || loss.End.add(guard+aftermath) >= f.Start
}

// void returns the fault for which h may have been granted by a primary that was none any more; nil
// if there is none. At the level Replicas there never is: nobody counts on what it grants.
func void(h *hold, faults []*fault) *fault {
	for _, f := range faults {
		if h.Level == levelDefault && splits[f.Kind] && f.during(h, h.Enter) {
			return f
		}
	}
	return nil
}

// during reports whether a fault that concerns h was under way between its grant and a moment.
func (f *fault) during(h *hold, at stamp) bool {
	over := f.End
	if over != forever {
		over = over.add(aftermath)
	}
	return (f.Lock == "" || f.Lock == h.Lock) && f.Start <= at && over >= h.Start
}
