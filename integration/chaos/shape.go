// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/integration/server"
)

// shape is a deployment.
type shape struct {
	name     string
	spec     server.Spec
	replicas int // of each primary
	kinds    []kind
	profiles []string
}

// quorum reports whether locks are had on a majority of servers.
func (s shape) quorum() bool { return s.spec.Kind == server.KindSeveral }

// networkKinds, clientKinds and handKinds are possible everywhere. A kind that is named twice is
// chosen twice as often.
var (
	networkKinds = []kind{netPartition, netRequests, netReplies, netSilence, netDelay, netDelay,
		netReset, netReset, netLostReply, netLostReply}
	clientKinds = []kind{clientPause, clientPause, clientPause, clientKill}
	handKinds   = []kind{lockBreak, keyDelete, voteDelete, voteDelete, connKill, connKill,
		connKill, connKill, pubsubKill, pubsubKill, libReplace,
		libReplace, libFlush, memoryFull, rightsGone}
)

// shapes take turns in this order.
var shapes = []shape{
	{name: "durable", spec: server.Spec{Kind: server.KindSingle, Own: true,
		Config: [][2]string{{"appendonly", "yes"}, {"appendfsync", "always"}}},
		kinds: []kind{serverRestart, serverRestart, serverPause}, profiles: usual},
	// What is written is the system's, which outlives a server that is killed.
	{name: "quorum", spec: server.Spec{Kind: server.KindSeveral, Servers: 5,
		Config: [][2]string{{"appendonly", "yes"}, {"appendfsync", "no"}}},
		kinds: []kind{serverPause, serverRestart, serverForget, serverForget, serverForget,
			majorityPause, majorityRestart, majorityForget, majorityForget},
		profiles: []string{profileAll, profileStrict, profileGuard}},
	{name: "sentinel", spec: server.Spec{Kind: server.KindSentinel}, replicas: 2,
		kinds: []kind{serverPause, replicaKill, replicaRestart, failoverAsk, failoverKill,
			failoverStale, failoverPause, sentinelOff, sentinelOff, sentinelDeaf, sentinelMute,
			sentinelSide, cutPair}, profiles: usual},
	{name: "cluster", spec: server.Spec{Kind: server.KindCluster}, replicas: 1,
		kinds: []kind{serverPause, replicaKill, replicaRestart, failoverOrder, failoverOrder,
			failoverForce, failoverTake, failoverKill, failoverStale, failoverStale, failoverPause,
			slotMove, slotMove, slotMove, cutOff, cutOff, cutDeaf, cutMute, cutHeir, cutHeir, cutPair},
		profiles: usual},
	{name: "memory", spec: server.Spec{Kind: server.KindSingle, Own: true},
		kinds: []kind{serverForget, serverPause}, profiles: usual},
}

func shapeOf(name string) (shape, error) {
	i := slices.IndexFunc(shapes, func(s shape) bool { return s.name == name })
	if i < 0 {
		return shape{}, fmt.Errorf("no deployment %q", name)
	}
	return shapes[i], nil
}
