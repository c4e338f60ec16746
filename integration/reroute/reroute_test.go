package reroute_test

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/reroute"
	"github.com/holdfast-go/holdfast/integration/server"
)

const soon = 15 * time.Second

// A replica follows its primary through a proxy, and names the primary's real address. Killed and started
// again it does so too.
func TestAReplicaFollowsThroughAProxy(t *testing.T) {
	library, err := reroute.Build()
	if err != nil {
		t.Skip(err)
	}
	server.Each(t, func(t *testing.T, f server.Flavour) {
		var p *server.Proxy
		d := server.Replicated(t, 1, server.WithFlavour(f), server.WithPreload(library), func(s *server.Spec) {
			s.Before = func(d *server.Deployment) error {
				primary, replica := d.Nodes()[0], d.Nodes()[1]
				p = server.NewProxy(t, primary.Addr)
				routes := reroute.Routes(map[int]int{1: 2, primary.Ports()[0]: port(t, p.Addr), 70000: 3})
				_, err := replica.Put(reroute.File, routes)
				return err
			}
		})
		if p.Links() == 0 {
			t.Skip("this server does not connect through a library in front of the C library: is it linked statically?")
		}
		primary, replica := d.Nodes()[0], d.Nodes()[1]
		named := replica.Info(t.Context(), "replication", "master_port")
		require.Equal(t, strconv.Itoa(primary.Ports()[0]), named)

		p.Stall()
		_, err := primary.Do(t.Context(), "SET", "k", "v")
		require.NoError(t, err)
		require.Never(t, func() bool { return has(t, replica, "k") }, 200*time.Millisecond, 5*time.Millisecond)
		p.Resume()
		require.Eventually(t, func() bool { return has(t, replica, "k") }, soon, 5*time.Millisecond)

		require.NoError(t, replica.Kill())
		require.Eventually(t, func() bool { return p.Links() == 0 }, soon, 5*time.Millisecond)
		require.NoError(t, replica.Restart())
		require.Eventually(t, func() bool { return p.Links() > 0 }, soon, 5*time.Millisecond)
	})
}

func has(t *testing.T, n *server.Node, key string) bool {
	m, err := n.Do(t.Context(), "EXISTS", key)
	require.NoError(t, err)
	count, err := m.AsInt64()
	require.NoError(t, err)
	return count == 1
}

func port(t *testing.T, addr string) int {
	_, text, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	number, err := strconv.Atoi(text)
	require.NoError(t, err)
	return number
}
