// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestParseClusterNodes(t *testing.T) {
	reply := "txt:a 10.0.0.1:7000@17000,one.example master - 0 1 1 connected 0-99 200 [300->-b]\n" +
		"b 10.0.0.2:7000@17000,,shard-id=x master,fail? - 0 1 2 connected\n" +
		"c 2001:db8::3:7000@17000 slave,fail a 0 1 1 disconnected\n" +
		"d :7000@17000 myself,slave a 0 1 1 connected\n" +
		"e 10.0.0.5:7000@17000 handshake - 0 0 0 connected\n" +
		"f :0@0 slave,noaddr b 0 0 0 disconnected\n" +
		"g :0@0 master,fail,noaddr - 0 0 0 disconnected 300-301\n" // an empty node came to its address
	connected := map[string]rueidis.Client{"one.example:7000": struct{ rueidis.Client }{}}
	nodes, err := parseClusterNodes(reply, "10.0.0.4:7000", connected)
	require.NoError(t, err)
	require.Equal(t, []Node{
		{ID: "a", Addr: "one.example:7000", Role: Primary, Slots: [][2]uint16{{0, 99}, {200, 200}}},
		{ID: "b", Addr: "10.0.0.2:7000", Role: Primary},
		{ID: "c", Addr: "[2001:db8::3]:7000", Role: Replica, Primary: "one.example:7000", Down: true},
		{ID: "d", Addr: "10.0.0.4:7000", Role: Replica, Primary: "one.example:7000"},
		{ID: "g", Addr: "g", Role: Primary, Slots: [][2]uint16{{300, 301}}, Down: true},
	}, nodes)

	_, err = parseClusterNodes("nonsense\n", "10.0.0.4:7000", nil)
	require.ErrorContains(t, err, "nonsense")
}
