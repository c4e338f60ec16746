// SPDX-License-Identifier: Apache-2.0

package main

// kind is what a fault does.
type kind string

// Faults of the network, between one client process and one server, or all.
const (
	netPartition kind = "network.partition" // nothing comes through, then the connections are gone
	netRequests  kind = "network.requests"  // requests do not come through
	netReplies   kind = "network.replies"   // replies do not come through
	netSilence   kind = "network.silence"   // nothing comes through, then all of it, late
	netDelay     kind = "network.delay"     // everything is late
	netReset     kind = "network.reset"     // connections end
	netLostReply kind = "network.lostreply" // a call runs, and its connection ends
)

// Faults of client processes.
const (
	clientPause kind = "client.pause" // SIGSTOP, SIGCONT
	clientKill  kind = "client.kill"  // SIGKILL, and another one starts
)

// Hands of operators.
const (
	lockBreak   kind = "lock.break"
	keyDelete   kind = "key.delete"
	voteDelete  kind = "key.delete.minority" // of a quorum
	connKill    kind = "conn.kill"           // CLIENT KILL TYPE normal
	pubsubKill  kind = "conn.pubsub"         // CLIENT KILL TYPE pubsub
	replicaKill kind = "conn.replica"        // CLIENT KILL TYPE replica
	memoryFull  kind = "memory.full"         // CONFIG SET maxmemory, for a while
	rightsGone  kind = "rights.gone"         // ACL SETUSER default -fcall, for a while
	libReplace  kind = "function.replace"    // FUNCTION LOAD REPLACE
	libFlush    kind = "function.flush"      // FUNCTION FLUSH, and FUNCTION LOAD a moment later
)

// Faults of servers. Each lasts until the deployment is whole again. In a quorum it is one server, or
// two at a time.
const (
	serverPause     kind = "server.pause"   // SIGSTOP, SIGCONT before anybody takes over
	serverRestart   kind = "server.restart" // SIGKILL, and it has all on disk
	serverForget    kind = "server.forget"  // SIGKILL, and it comes back empty
	majorityPause   kind = "majority.pause" // as of one or two servers, but of a majority of a quorum
	majorityRestart kind = "majority.restart"
	majorityForget  kind = "majority.forget"
	replicaRestart  kind = "replica.restart"    // SIGKILL of a replica, which comes back empty
	failoverOrder   kind = "failover.order"     // CLUSTER FAILOVER
	failoverForce   kind = "failover.force"     // CLUSTER FAILOVER FORCE
	failoverTake    kind = "failover.takeover"  // CLUSTER FAILOVER TAKEOVER
	failoverAsk     kind = "failover.sentinel"  // SENTINEL FAILOVER
	failoverKill    kind = "failover.kill"      // SIGKILL of the primary
	failoverStale   kind = "failover.stale"     // SIGKILL of the primary while its replicas lag
	failoverPause   kind = "failover.pause"     // SIGSTOP of the primary until another one took over
	failoverStray   kind = "failover.unplanned" // another fault made a replica the primary
	slotMove        kind = "slot.move"
)

// Faults of the network between servers, which clients still reach. Each lasts until the deployment is
// whole again. What is admitted differs between a Cluster and Sentinel, and so their names do.
const (
	cutOff       kind = "cut.off"  // between one server and all others
	cutDeaf      kind = "cut.deaf" // what the others send does not arrive at one server
	cutMute      kind = "cut.mute" // what one server sends does not arrive at the others
	cutHeir      kind = "cut.heir" // as mute, and it does not hear its replicas either
	sentinelOff  kind = "cut.off.sentinel"
	sentinelDeaf kind = "cut.deaf.sentinel"
	sentinelMute kind = "cut.mute.sentinel"
	sentinelSide kind = "cut.side.sentinel" // the primary and the clients are on one side
	cutPair      kind = "cut.pair"          // between two servers, or what one sends the other
)
