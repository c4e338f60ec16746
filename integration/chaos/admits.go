package main

import "time"

// verdict is what a fault may do to a lock that somebody holds.
type verdict int

const (
	nothing      verdict = iota // its holder stays the only one
	secondHolder                // a second holder may be let in, with a higher token
)

// admits is what docs/guarantees.md admits for each kind of fault, at the default level and at the
// level Replicas with all replicas. It is the only place that decides it.
var admits = map[kind]struct{ byDefault, withReplicas verdict }{
	// "Clients and messages": both levels are alike, nobody is let in beside a live context.
	netPartition: {nothing, nothing},
	netRequests:  {nothing, nothing},
	netReplies:   {nothing, nothing},
	netSilence:   {nothing, nothing},
	netDelay:     {nothing, nothing},
	netReset:     {nothing, nothing},
	netLostReply: {nothing, nothing},
	clientPause:  {nothing, nothing},
	clientKill:   {nothing, nothing},
	connKill:     {nothing, nothing},
	pubsubKill:   {nothing, nothing},
	replicaKill:  {nothing, nothing},

	// "FUNCTION FLUSH": locks stay. FUNCTION LOAD REPLACE is safe while locks are held.
	libReplace: {nothing, nothing},
	libFlush:   {nothing, nothing},

	// "the key is deleted or evicted, or the lock is broken"
	lockBreak: {secondHolder, secondHolder},
	keyDelete: {secondHolder, secondHolder},

	// A server that was away for a moment, or that has everything on disk, has forgotten nothing.
	serverPause:   {nothing, nothing},
	serverRestart: {nothing, nothing},
	// "a server restarts with an older memory, or none, and is the primary": everything is
	// forgotten. A replica that does is not the primary before it has synchronised here.
	serverForget:   {secondHolder, secondHolder},
	replicaRestart: {nothing, nothing},

	// "failover in good order", "a slot moves to another node"
	failoverOrder: {nothing, nothing},
	slotMove:      {nothing, nothing},

	// "forced failover, or the primary is killed and a replica promoted", "split brain". Sentinel
	// promotes a replica without asking the primary to stop.
	failoverForce: {secondHolder, nothing},
	failoverTake:  {secondHolder, nothing},
	failoverAsk:   {secondHolder, nothing},
	failoverKill:  {secondHolder, nothing},
	failoverStale: {secondHolder, nothing},
	failoverPause: {secondHolder, nothing},
	failoverStray: {secondHolder, nothing},
}

// splits are the faults with which a primary that is none any more, or that comes back empty and
// takes itself for one, "goes on granting" at the default level. Whom it grants a lock is beside
// the holder at the other primary, whatever that one's level is.
var splits = map[kind]bool{
	failoverForce: true, failoverTake: true, failoverAsk: true, failoverKill: true,
	failoverStale: true, failoverPause: true, failoverStray: true,
}

// aftermath is how long after the end of a fault a lock that was granted then may still be lost:
// requests that were on their way reach a server whose grants do not count any more.
const aftermath = time.Second

// excuse returns the fault for which h may have met another holder at a moment; nil if there is
// none. It must have been under way between the grant and then.
func excuse(h *hold, at stamp, faults []*fault) *fault {
	for _, f := range faults {
		v := admits[f.Kind]
		may := v.byDefault
		if h.Level == levelReplicas {
			may = v.withReplicas
		}
		if may == secondHolder && f.during(h, at) {
			return f
		}
	}
	return nil
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
