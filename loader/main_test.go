// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "4") // tests here wait more than they compute
	os.Exit(leaks.Check(m.Run()))
}

const (
	soon      = time.Minute
	pollEvery = 20 * time.Millisecond
)

// kinds are the deployments that the loader must serve alike, with the number of their primaries
// and replicas.
var kinds = []struct {
	name                string
	start               func(testing.TB, ...server.Option) *server.Deployment
	primaries, replicas int
}{
	{"single", server.Single, 1, 0},
	{"replicated", func(tb testing.TB, opts ...server.Option) *server.Deployment {
		return server.Replicated(tb, 2, opts...)
	}, 1, 2},
	{"sentinel", server.Sentinel, 1, 2},
	{"cluster", server.Cluster, 3, 3},
}

// eachKind runs a test on every server and every kind of deployment.
func eachKind(t *testing.T, test func(t *testing.T, d *server.Deployment, primaries, replicas int)) {
	server.Each(t, func(t *testing.T, f server.Flavour) { ofKinds(t, test, server.WithFlavour(f)) })
}

// ofKinds runs a test on every kind of deployment.
func ofKinds(t *testing.T, test func(t *testing.T, d *server.Deployment, primaries, replicas int), opts ...server.Option) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			test(t, kind.start(t, append(opts, server.Owned())...), kind.primaries, kind.replicas)
		})
	}
}

// connect returns a client, and options with a Dial, after it has waited until the deployment sees
// itself in full.
func connect(t *testing.T, d *server.Deployment) (rueidis.Client, loader.Options) {
	t.Helper()
	opt := d.ClientOption()
	opt.DisableCache = true
	client := open(t, opt)
	require.Eventually(t, func() bool {
		nodes, err := cluster.Topology(context.Background(), client)
		return err == nil && len(nodes) == len(d.Nodes())
	}, soon, pollEvery)
	return client, loader.Options{Dial: loader.Dialer(opt)}
}

// source is our library with another version.
func source(version string) string {
	return strings.Replace(functions.Source, "local VERSION = '"+functions.Version+"'", "local VERSION = '"+version+"'", 1)
}

// The versions before those of functions, of the same contracts.
const (
	older       = functions.Version + "-rc.1"
	olderFenced = functions.FencedVersion + "-rc.1"
)

// put loads a source on one node, past the loader.
func put(t *testing.T, n *server.Node, source string) {
	t.Helper()
	reply, err := n.Do(context.Background(), "FUNCTION", "LOAD", "REPLACE", source)
	require.NoError(t, err)
	_, err = reply.ToString()
	require.NoError(t, err)
}

// codes returns the library's source at every node, "" for none.
func codes(t *testing.T, d *server.Deployment) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, n := range d.Nodes() {
		found[n.Addr] = codeOf(t, n, functions.Library)
	}
	return found
}

func codeOf(t *testing.T, n *server.Node, library string) string {
	t.Helper()
	reply, err := n.Do(context.Background(), "FUNCTION", "LIST", "LIBRARYNAME", library, "WITHCODE")
	require.NoError(t, err)
	libraries, err := reply.ToArray()
	require.NoError(t, err)
	if len(libraries) == 0 {
		return ""
	}
	fields, err := libraries[0].AsMap()
	require.NoError(t, err)
	code := fields["library_code"]
	text, err := code.ToString()
	require.NoError(t, err)
	return text
}

func requireEverywhere(t *testing.T, d *server.Deployment, code string) {
	t.Helper()
	for addr, found := range codes(t, d) {
		require.Equal(t, code == "", found == "", "%s", addr)
		require.True(t, code == found, "%s has another library", addr)
	}
}

// actions returns what was done, in the report's order.
func actions(report loader.Report) []loader.Action {
	var list []loader.Action
	for _, node := range report.Nodes {
		list = append(list, node.Action)
	}
	return list
}

func repeat(n int, action loader.Action, m int, more loader.Action) []loader.Action {
	var list []loader.Action
	for range n {
		list = append(list, action)
	}
	for range m {
		list = append(list, more)
	}
	return list
}

func entry(t *testing.T, report loader.Report, n *server.Node) loader.NodeReport {
	t.Helper()
	for _, node := range report.Nodes {
		if node.Addr == n.Addr {
			return node
		}
	}
	t.Fatalf("no entry for %s in %+v", n.Addr, report.Nodes)
	return loader.NodeReport{}
}

func open(t *testing.T, opt rueidis.ClientOption) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(opt)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}
