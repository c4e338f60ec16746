package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/reexec"
	"github.com/holdfast-go/holdfast/integration/server"
)

const soon = 15 * time.Second

func TestMain(m *testing.M) {
	reexec.Main(map[string]reexec.Role{starter: start})
	goleak.VerifyTestMain(m, leaks.Late()...)
}

func TestSingle(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		d := server.Single(t, server.WithFlavour(f))
		c := client(t, d)
		require.NoError(t, set(c, "server:single", "v"))
		require.NoError(t, do(d.Nodes()[0], "DEL", "server:single"))
		require.Len(t, d.Nodes(), 1)
	})
}

func TestReplicated(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		d := server.Replicated(t, 2, server.WithFlavour(f))
		require.Len(t, d.Nodes(), 3)
		require.Equal(t, []string{d.Nodes()[0].Addr}, d.Addrs())
		c := client(t, d)
		replies := c.DoMulti(context.Background(), c.B().Set().Key("k").Value("v").Build(),
			c.B().Wait().Numreplicas(2).Timeout(soon.Milliseconds()).Build())
		n, err := replies[1].AsInt64()
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
	})
}

func TestSentinelFailsOver(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		d := server.Sentinel(t, server.WithFlavour(f))
		require.Len(t, d.Nodes(), 3)
		require.Len(t, d.Sentinels(), 3)
		c := client(t, d)
		require.NoError(t, set(c, "k", "v"))
		require.NoError(t, d.Nodes()[0].Kill())
		require.Eventually(t, func() bool { return set(c, "k", "w") == nil }, soon, 20*time.Millisecond)
	})
}

func TestClusterFailsOver(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		d := server.Cluster(t, server.WithFlavour(f))
		require.Len(t, d.Nodes(), 6)
		d.Load(t)
		for _, n := range d.Nodes() {
			m, err := n.Do(context.Background(), "FUNCTION", "LIST", "LIBRARYNAME", functions.Library)
			require.NoError(t, err)
			libraries, err := m.ToArray()
			require.NoError(t, err)
			require.Len(t, libraries, 1, "on %s", n.Addr)
		}
		c := client(t, d)
		for _, k := range []string{"a", "b", "c", "d"} {
			require.NoError(t, set(c, k, "v"))
		}
		require.NoError(t, d.Nodes()[0].Kill())
		require.Eventually(t, func() bool {
			for _, k := range []string{"a", "b", "c", "d"} {
				if set(c, k, "w") != nil {
					return false
				}
			}
			return true
		}, soon, 20*time.Millisecond)
	})
}

func TestFailover(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		d, err := server.Start(t.Context(), server.Spec{Flavour: f, Kind: server.KindCluster, Own: true})
		require.NoError(t, err)
		defer d.Close()
		primary, replica := d.Nodes()[0], d.Nodes()[3]
		require.ErrorContains(t, primary.Failover(t.Context()), "it is a primary")
		for _, how := range [][]string{nil, {"TAKEOVER"}} {
			require.NoError(t, replica.Failover(t.Context(), how...))
			now, err := replica.IsPrimary(t.Context())
			require.NoError(t, err)
			require.True(t, now)
			require.Eventually(t, func() bool {
				still, err := primary.IsPrimary(t.Context())
				return err == nil && !still
			}, soon, 5*time.Millisecond)
			primary, replica = replica, primary
		}
		require.NoError(t, primary.Kill())
		require.NoError(t, replica.Promoted(t.Context()))
		require.ErrorContains(t, primary.Failover(t.Context()), primary.Addr)
	})
}

func TestSeveral(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		d := server.Several(t, 3, server.WithFlavour(f))
		require.Len(t, d.ClientOptions(), 3)
		d.Load(t)
		for i, o := range d.ClientOptions() {
			require.NoError(t, set(clientOf(t, o), "k", "v"))
			require.EqualValues(t, 1, size(t, d.Nodes()[i]))
			require.Equal(t, "0", d.Nodes()[i].Info(t.Context(), "replication", "connected_slaves"))
		}
	})
}

func client(t *testing.T, d *server.Deployment) rueidis.Client {
	t.Helper()
	return clientOf(t, d.ClientOption())
}

func clientOf(t *testing.T, o rueidis.ClientOption) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func set(c rueidis.Client, key, value string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return c.Do(ctx, c.B().Set().Key(key).Value(value).Build()).Error()
}
