// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// A Cluster's primary is cut off from all others, and still reached by us: it stops, its replica is
// promoted, and when the cut is over, it follows.
func TestAPrimaryIsCutOff(t *testing.T) {
	v := meshed(t, "cluster")
	primary, replica := v.nodes[0], v.nodes[3]
	paths := v.mesh.around(cutOff, primary)
	require.Len(t, paths, 2*(len(v.nodes)-1))
	cut := time.Now()
	v.mesh.silence(paths)
	var stopped, promoted time.Duration
	require.True(t, until(30*time.Second, func() bool {
		if stopped == 0 && down(primary) {
			stopped = time.Since(cut)
		}
		if promoted == 0 && roleOf(replica) == "master" {
			promoted = time.Since(cut)
		}
		return stopped > 0 && promoted > 0
	}))
	t.Logf("it stopped after %v, another one took over after %v", stopped, promoted)
	require.Less(t, stopped, promoted)
	require.Equal(t, "master", roleOf(primary), "it does not know")
	v.mesh.heal(paths, false)
	require.NoError(t, v.whole())
	require.Equal(t, "slave", roleOf(primary))
	require.Equal(t, "master", roleOf(replica))
}

// One that is deaf or mute is cut off one way. Two that are cut off from each other cost nobody the
// Cluster.
func TestCutsOneWayAndBetweenTwo(t *testing.T) {
	v := meshed(t, "cluster")
	primary, replica := v.nodes[0], v.nodes[3]
	mute := v.mesh.around(cutMute, primary)
	v.mesh.silence(mute)
	require.True(t, until(30*time.Second, func() bool {
		return roleOf(replica) == "master"
	}), "nobody hears of it")
	v.mesh.heal(mute, true)
	require.NoError(t, v.whole())

	deaf := v.mesh.around(cutDeaf, replica)
	v.mesh.silence(deaf)
	require.True(t, until(30*time.Second, func() bool { return down(replica) }), "it hears of nobody")
	v.mesh.heal(deaf, true)
	require.NoError(t, v.whole())

	both, _ := pair(v.nodes[1], v.nodes[2], 2)
	v.mesh.silence(both)
	require.Never(t, func() bool { return down(v.nodes[1]) || down(v.nodes[2]) }, 4*time.Second, 100*time.Millisecond)
	v.mesh.heal(both, false)
	require.NoError(t, v.whole())
}

// A primary that nobody hears, and that hears the other primaries, but not its replica, can go on beside
// the one that is promoted. With min-replicas-to-write it takes no write any more by then.
func TestAPrimaryThatNobodyHearsStopsWithMinReplicas(t *testing.T) {
	v := meshed(t, "cluster")
	require.NoError(t, v.everywhere("CONFIG", "SET", "min-replicas-to-write", "1", "min-replicas-max-lag", "1"))
	primary, replica := v.nodes[0], v.nodes[3]
	key := "k"
	for cluster.Slot(key) > 5000 { // the primary has those
		key += "k"
	}
	v.stopsFirst(t, append(v.mesh.around(cutHeir, primary), path{replica, primary}), key)
}

// So does a Sentinel's primary that is cut off, with the clients on its side, if those wait two seconds
// longer than the lag may be.
func TestASentinelsPrimaryThatIsCutOffStopsWithMinReplicas(t *testing.T) {
	v := meshed(t, "sentinel")
	require.NoError(t, v.everywhere("CONFIG", "SET", "min-replicas-to-write", "1", "min-replicas-max-lag", "1"))
	for _, s := range v.deployment.Sentinels() {
		require.NoError(t, tell(s, "SENTINEL", "SET", server.SentinelMaster, "down-after-milliseconds", "3000"))
	}
	v.stopsFirst(t, v.mesh.around(sentinelSide, v.nodes[0]), "k")
}

// stopsFirst silences paths around the first primary. It asserts that this one takes no write of a key any
// more when another one is the primary, and for two seconds after.
func (v *servers) stopsFirst(t *testing.T, paths []path, key string) {
	writes := func() bool { return tell(v.nodes[0], "SET", key, "v") == nil }
	require.True(t, writes())
	before := len(v.primaries())
	cut := time.Now()
	v.mesh.silence(paths)
	last, promoted := time.Duration(0), time.Duration(0)
	require.True(t, until(30*time.Second, func() bool {
		if asked := time.Since(cut); writes() {
			last = asked
		}
		if promoted == 0 && len(v.primaries()) > before {
			promoted = time.Since(cut)
		}
		return promoted > 0 && time.Since(cut) > promoted+2*time.Second
	}))
	t.Logf("it took the last write after %v, another one took over after %v", last, promoted)
	require.Less(t, last, promoted)
	v.mesh.heal(paths, true)
	require.NoError(t, v.whole())
}

// meshed starts a deployment whose servers can be cut off from each other, or skips the test.
func meshed(t *testing.T, name string) *servers {
	if testing.Short() {
		t.Skip("make chaos-defects plays it")
	}
	s, err := shapeOf(name)
	require.NoError(t, err)
	v, err := startServers(t.Context(), s, functions.Source, false)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, v.close()) })
	if v.mesh == nil {
		t.Skip("servers are not cut off from each other here")
	}
	return v
}

// down reports whether a server of a Cluster finds that it may not serve.
func down(n *server.Node) bool {
	m, err := probe(n, "CLUSTER", "INFO")
	if err != nil {
		return false
	}
	text, _ := m.ToString()
	return strings.Contains(text, "cluster_state:fail")
}
