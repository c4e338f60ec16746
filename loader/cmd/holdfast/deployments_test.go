// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

// clusterOfOne starts a Cluster of one node. Without slots it is a node of none.
func clusterOfOne(t *testing.T, slots ...string) *server.Node {
	t.Helper()
	n := server.Single(t, server.Owned(), server.WithConfig("cluster-enabled", "yes")).Nodes()[0]
	if len(slots) > 0 {
		_, err := n.Do(t.Context(), append([]string{"CLUSTER", "ADDSLOTSRANGE"}, slots...)...)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			m, err := n.Do(t.Context(), "CLUSTER", "INFO")
			require.NoError(t, err)
			text, _ := m.ToString()
			return strings.Contains(text, "cluster_state:ok")
		}, soon, pollEvery)
	}
	return n
}

func at(addrs ...string) place { return place{"--addr", strings.Join(addrs, ",")} }

func TestTwoClusters(t *testing.T) {
	t.Parallel()
	one, other := clusterOfOne(t, "0", "16383"), clusterOfOne(t, "0", "16383")
	both := at(one.Addr, other.Addr)
	r := both.do(t, "load")
	require.Equal(t, 0, r.code, r)
	require.Equal(t, 2, strings.Count(r.out, " loaded "), r.out)
	r = both.do(t, "run", "-n", "a", "--", "echo", "ran")
	require.Equal(t, 64, r.code, r)
	require.Contains(t, r.errors, "several deployments")
	require.Equal(t, 2, both.do(t, "ls").code)

	_, port, err := net.SplitHostPort(one.Addr)
	require.NoError(t, err)
	twice := at(one.Addr, "localhost:"+port) // by another address than it announces
	require.Equal(t, ran, twice.do(t, "run", "-n", "a", "--", "echo", "ran"))
	r = twice.do(t, "verify")
	require.Equal(t, 0, r.code, r)
	require.Equal(t, 1, strings.Count(r.out, " unchanged "), r.out)
}

// A replica of another primary has other locks. A primary's own may be named beside it.
func TestAReplicaOfAnotherPrimary(t *testing.T) {
	t.Parallel()
	one, other := server.Single(t, server.Owned()), server.Replicated(t, 1)
	whole(t, other)
	one.Load(t)
	other.Load(t)
	primary, replica := other.Nodes()[0], other.Nodes()[1]
	for _, command := range [][]string{{"ls"}, {"run", "-n", "a", "--", "echo", "ran"}} {
		r := at(one.Addrs()[0], replica.Addr).do(t, command[0], command[1:]...)
		require.Equal(t, map[string]int{"ls": 2, "run": 64}[command[0]], r.code, r)
		require.Contains(t, r.errors, "several deployments")
		require.Equal(t, 0, at(primary.Addr, replica.Addr).do(t, command[0], command[1:]...).code)
	}
	_, err := replica.Do(t.Context(), "REPLICAOF", "NO", "ONE")
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(replica.Addr)
	require.NoError(t, err)
	_, err = primary.Do(t.Context(), "REPLICAOF", host, port)
	require.NoError(t, err)
	require.Equal(t, ran, at(primary.Addr, replica.Addr).do(t, "run", "-n", "a", "--", "echo", "ran"))
}

// What is named beside a Cluster and is not seen through it is said.
func TestAddressesBesideACluster(t *testing.T) {
	t.Parallel()
	node, left := clusterOfOne(t, "0", "16383"), clusterOfOne(t)
	guarded := server.Single(t, server.Owned(), server.WithConfig("requirepass", "s3cret"))
	dead := server.Single(t, server.Owned())
	require.NoError(t, dead.Nodes()[0].Kill())
	require.Equal(t, 0, at(node.Addr).do(t, "load").code)
	for _, c := range []struct {
		addr string
		code int
		says string
		run  int // of a command about locks
	}{
		{left.Addr, 1, "no slots", 0},           // a node that was taken out
		{guarded.Addrs()[0], 1, "password", 77}, // others may have its password, and not that of the first
		{dead.Addrs()[0], 0, "taken for a node of the Cluster", 0},
		{loading(t), 0, "taken for a node of the Cluster", 0},
	} {
		for _, where := range []place{at(node.Addr, c.addr), at(c.addr, node.Addr)} {
			for _, command := range []string{"load", "verify"} {
				r := where.do(t, command, "--timeout", "6s") // load waits for a Cluster that is being made
				require.Equal(t, c.code, r.code, r)
				require.Contains(t, r.errors, c.addr)
				require.Contains(t, r.errors, c.says)
				require.Equal(t, 1, strings.Count(r.out, " unchanged "), r.out)
			}
			require.Equal(t, c.code, where.do(t, "acl", "--check", "--for", "client").code)
			r := where.do(t, "run", "-n", "a", "--", "echo", "ran")
			require.Equal(t, c.run, r.code, r)
			if c.run != 0 {
				require.Contains(t, r.errors, c.says)
			}
		}
	}
}

// loading is a node of a Cluster that is reading its data.
func loading(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for in := bufio.NewReader(conn); ; {
					var words, size int
					if _, err := fmt.Fscanf(in, "*%d\r\n", &words); err != nil {
						return
					}
					answer := "-LOADING Redis is loading the dataset in memory\r\n"
					for range words {
						_, _ = fmt.Fscanf(in, "$%d\r\n", &size)
						word := make([]byte, size+2)
						_, _ = io.ReadFull(in, word)
						if string(word) == "HELLO\r\n" {
							answer = "%2\r\n+mode\r\n+cluster\r\n+role\r\n+master\r\n"
						}
					}
					_, _ = io.WriteString(conn, answer)
				}
			}()
		}
	}()
	return ln.Addr().String()
}

// A user who may not see a Cluster's nodes would load one of them, and be told that all is well.
func TestAClusterThatTheUserMayNotSee(t *testing.T) {
	t.Parallel()
	node := clusterOfOne(t, "0", "16383")
	_, err := node.Do(t.Context(), "ACL", "SETUSER", "dep", "on", ">s3cret", "+ping", "+role", "+function|list", "+function|load")
	require.NoError(t, err)
	r := holdfast(t, []string{"HOLDFAST_PASSWORD=s3cret"}, "load", "--user", "dep", "--addr", node.Addr)
	require.Equal(t, 1, r.code, r)
	require.Contains(t, r.errors, "+cluster|nodes")
}
