// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/server"
)

func TestMain(m *testing.M) {
	os.Exit(leaks.Check(m.Run()))
}

const (
	soon      = 20 * time.Second
	pollEvery = 20 * time.Millisecond
)

func connect(t *testing.T, opt rueidis.ClientOption) rueidis.Client {
	t.Helper()
	opt.DisableCache = true
	client, err := rueidis.NewClient(opt)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// oddKeys are the corner cases of the specification, and keys of random bytes with braces strewn
// in.
func oddKeys() []string {
	keys := []string{"", "a", "{", "}", "{}", "{}{a}", "{a", "a}", "}{", "}a{b}c", "{{a}}", "{{a}b}", "a{b}{c}", "{\x00}", "\xff{\xfe}", "{ }"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		key := make([]byte, random.IntN(40))
		for i := range key {
			switch random.IntN(8) {
			case 0:
				key[i] = '{'
			case 1:
				key[i] = '}'
			default:
				key[i] = byte(random.IntN(256))
			}
		}
		keys = append(keys, string(key))
	}
	long := make([]byte, 100_000)
	for i := range long {
		long[i] = byte(random.IntN(256))
	}
	return append(keys, string(long), "{"+string(long[:500])+"}tail")
}

func TestSlotIsWhatTheServerSays(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		client := connect(t, server.Cluster(t, server.WithFlavour(f)).ClientOption())
		var node rueidis.Client
		for _, node = range client.Nodes() {
			break
		}
		keys := oddKeys()
		commands := make(rueidis.Commands, len(keys))
		for i, key := range keys {
			commands[i] = node.B().ClusterKeyslot().Key(key).Build()
		}
		for i, reply := range node.DoMulti(context.Background(), commands...) {
			slot, err := reply.AsInt64()
			require.NoError(t, err)
			require.EqualValues(t, slot, cluster.Slot(keys[i]), "key %q", keys[i])
		}
	})
}

func TestTopologyOfASingleServer(t *testing.T) {
	d := server.Single(t, server.Owned())
	nodes := topology(t, connect(t, d.ClientOption()), 1)
	require.Equal(t, []cluster.Node{{Addr: d.Nodes()[0].Addr, Role: cluster.Primary}}, nodes)
}

func TestTopologyOfReplicas(t *testing.T) {
	d := server.Replicated(t, 2)
	requireReplicated(t, d, topology(t, connect(t, d.ClientOption()), len(d.Nodes())), d.Nodes()[0].Addr)
}

func TestTopologySeenFromAReplica(t *testing.T) {
	d := server.Replicated(t, 1)
	primary, replica := d.Nodes()[0].Addr, d.Nodes()[1].Addr
	nodes := topology(t, connect(t, rueidis.ClientOption{InitAddress: []string{replica}}), 2)
	require.Equal(t, []cluster.Node{
		{Addr: primary, Role: cluster.Primary},
		{Addr: replica, Role: cluster.Replica, Primary: primary},
	}, nodes)
}

func TestTopologyOfAClientWithReplicas(t *testing.T) {
	d := server.Replicated(t, 1)
	opt := d.ClientOption()
	opt.Standalone.ReplicaAddress = []string{d.Nodes()[1].Addr}
	opt.SendToReplicas = func(rueidis.Completed) bool { return false }
	requireReplicated(t, d, topology(t, connect(t, opt), 2), d.Nodes()[0].Addr)
}

func TestTopologyBehindSentinel(t *testing.T) {
	d := server.Sentinel(t)
	client := connect(t, d.ClientOption())
	requireReplicated(t, d, topology(t, client, 3), d.Nodes()[0].Addr)

	require.NoError(t, d.Nodes()[0].Kill())
	require.Eventually(t, func() bool {
		nodes, err := cluster.Topology(context.Background(), client)
		return err == nil && nodes[0].Role == cluster.Primary && nodes[0].Addr != d.Nodes()[0].Addr
	}, soon, pollEvery, "the new primary after a failover")
}

func TestTopologyOfACluster(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		d := server.Cluster(t, server.WithFlavour(f))
		client := connect(t, d.ClientOption())
		nodes := topology(t, client, 6)
		slots := 0
		for i, node := range nodes {
			require.Regexp(t, "^[0-9a-f]{40}$", node.ID)
			require.False(t, node.Down)
			require.Contains(t, client.Nodes(), node.Addr)
			if i < 3 {
				require.Equal(t, cluster.Primary, node.Role)
				require.Empty(t, node.Primary)
				for _, r := range node.Slots {
					slots += int(r[1]) - int(r[0]) + 1
				}
				continue
			}
			require.Equal(t, cluster.Replica, node.Role)
			require.Empty(t, node.Slots)
			require.Contains(t, []string{nodes[0].Addr, nodes[1].Addr, nodes[2].Addr}, node.Primary)
		}
		require.Equal(t, cluster.Slots, slots)

		require.NoError(t, d.Nodes()[0].Kill())
		require.Eventually(t, func() bool {
			nodes, err := cluster.Topology(context.Background(), client)
			for _, node := range nodes {
				if err == nil && node.Addr == d.Nodes()[0].Addr {
					return node.Down
				}
			}
			return false
		}, soon, pollEvery, "the cluster marks the killed primary as failed")
	})
}

// CLUSTER SLOTS knows nothing of a primary without slots, CLUSTER NODES does.
func TestTopologySeesAPrimaryWithoutSlots(t *testing.T) {
	d := server.Cluster(t)
	extra := emptyNode(t, d)
	client := connect(t, d.ClientOption())
	require.Eventually(t, func() bool {
		nodes, err := cluster.Topology(context.Background(), client)
		for _, node := range nodes {
			if node.Addr == extra && err == nil {
				return node.Role == cluster.Primary && len(node.Slots) == 0
			}
		}
		return false
	}, soon, pollEvery)
}

// emptyNode starts a further member of the cluster, which is given no slots.
func emptyNode(t *testing.T, d *server.Deployment) string {
	t.Helper()
	host, port, err := net.SplitHostPort(server.Single(t, server.Owned(), server.WithConfig("cluster-enabled", "yes")).Nodes()[0].Addr)
	require.NoError(t, err)
	_, err = d.Nodes()[0].Do(context.Background(), "CLUSTER", "MEET", host, port)
	require.NoError(t, err)
	return net.JoinHostPort(host, port)
}

func TestTopologyOfAServerThatIsGone(t *testing.T) {
	d := server.Single(t, server.Owned())
	client := connect(t, d.ClientOption())
	require.NoError(t, d.Nodes()[0].Kill())
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	_, err := cluster.Topology(ctx, client)
	require.ErrorContains(t, err, d.Nodes()[0].Addr)
}

// topology waits until the deployment sees itself in full: a primary lists a replica from its first
// acknowledgement on, and a cluster's node learns by gossip whose replica another one is.
func topology(t *testing.T, client rueidis.Client, want int) []cluster.Node {
	t.Helper()
	var nodes []cluster.Node
	require.Eventually(t, func() bool {
		var err error
		nodes, err = cluster.Topology(context.Background(), client)
		return err == nil && len(nodes) == want && !slices.ContainsFunc(nodes, func(n cluster.Node) bool {
			return n.Role == cluster.Replica && n.Primary == ""
		})
	}, soon, pollEvery, "%d nodes", want)
	return nodes
}

func requireReplicated(t *testing.T, d *server.Deployment, nodes []cluster.Node, primary string) {
	t.Helper()
	require.Len(t, nodes, len(d.Nodes()))
	require.Equal(t, cluster.Node{Addr: primary, Role: cluster.Primary}, nodes[0])
	for _, node := range nodes[1:] {
		require.Equal(t, cluster.Replica, node.Role)
		require.Equal(t, primary, node.Primary)
	}
}
