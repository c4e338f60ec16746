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
}

// networkKinds, clientKinds and handKinds are possible everywhere. A kind that is named twice is
// chosen twice as often.
var (
	networkKinds = []kind{netPartition, netRequests, netReplies, netSilence, netDelay, netDelay,
		netReset, netReset, netLostReply, netLostReply}
	clientKinds = []kind{clientPause, clientPause, clientPause, clientKill}
	handKinds   = []kind{lockBreak, keyDelete, connKill, connKill, pubsubKill, libReplace,
		libReplace, libFlush}
)

var shapes = []shape{
	{name: "durable", spec: server.Spec{Kind: server.KindSingle, Own: true,
		Config: [][2]string{{"appendonly", "yes"}, {"appendfsync", "always"}}},
		kinds: []kind{serverRestart, serverRestart, serverPause}},
	{name: "memory", spec: server.Spec{Kind: server.KindSingle, Own: true},
		kinds: []kind{serverForget, serverPause}},
	{name: "sentinel", spec: server.Spec{Kind: server.KindSentinel}, replicas: 2,
		kinds: []kind{serverPause, replicaKill, replicaRestart, failoverAsk, failoverKill,
			failoverStale, failoverPause}},
	{name: "cluster", spec: server.Spec{Kind: server.KindCluster}, replicas: 1,
		kinds: []kind{serverPause, replicaKill, replicaRestart, failoverOrder, failoverOrder,
			failoverForce, failoverTake, failoverKill, failoverStale, failoverStale, failoverPause,
			slotMove, slotMove, slotMove}},
}

func shapeOf(name string) (shape, error) {
	i := slices.IndexFunc(shapes, func(s shape) bool { return s.name == name })
	if i < 0 {
		return shape{}, fmt.Errorf("no deployment %q", name)
	}
	return shapes[i], nil
}

// A profile is which faults a round has.
const (
	profileAll      = "all"      // each of them
	profileReplicas = "replicas" // those that admit nothing at the level Replicas
	profileStrict   = "strict"   // those that admit nothing at any level

	// All callers are at the level Guard.
	profileGuard    = "guard"     // those that admit nothing there
	profileGuardAll = "guard-all" // each of them
)

// profiles take turns. Their number and that of the deployments have no common divisor, so each
// deployment meets each of them.
var profiles = []string{profileAll, profileReplicas, profileStrict, profileGuard, profileGuardAll}

// guarded reports whether all callers are at the level Guard.
func guarded(profile string) bool { return profile == profileGuard || profile == profileGuardAll }

// of are the kinds of a profile.
func of(profile string, kinds []kind) []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool {
		v := admits[k]
		switch profile {
		case profileReplicas:
			return v.withReplicas != nothing
		case profileStrict:
			return v.withReplicas != nothing || v.byDefault != nothing
		case profileGuard: // a slot moves only when the guard has passed: lane.stretch
			return v.withGuard == secondHolder
		}
		return false
	})
}
