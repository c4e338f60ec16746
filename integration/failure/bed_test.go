// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"flag"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/reexec"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

const prefix = "lock:"

// bed is a deployment of the test's own with the library on it.
type bed struct{ *testbed.Bed }

func lay(tb testing.TB, d *server.Deployment) *bed {
	tb.Helper()
	d.Load(tb)
	return &bed{testbed.Lay(tb, d, prefix)}
}

func single(t *testing.T) *bed {
	t.Helper()
	t.Parallel()
	return serial(t)
}

// serial is single for a test that runs beside no other, because it measures milliseconds.
func serial(t *testing.T) *bed {
	t.Helper()
	return lay(t, server.Single(t, server.Owned()))
}

// open returns a client of its own, closed at the end of the test.
func (b *bed) open(lease time.Duration) *client.Client {
	b.TB.Helper()
	return b.Connect(b.D.ClientOption(), client.Config{Lease: lease})
}

// through returns a client of its own behind a proxy of its own.
func (b *bed) through(lease time.Duration) (*client.Client, *server.Proxy) {
	b.TB.Helper()
	return b.Through(client.Config{Lease: lease})
}

// ends is when the lease ends, by this process's clock, at most a millisecond early; the zero time
// when there is none.
func (b *bed) ends(name string) time.Time {
	b.TB.Helper()
	for {
		asked := time.Now()
		now, err := b.Redis.Do(b.Ctx, b.Redis.B().Time().Build()).AsIntSlice()
		require.NoError(b.TB, err)
		// a busy machine: no way to compare the clocks
		if time.Since(asked) > time.Millisecond && b.Ctx.Err() == nil {
			continue
		}
		until, err := b.Do(name, "HGET", "until").AsInt64()
		if rueidis.IsRedisNil(err) {
			return time.Time{}
		}
		require.NoError(b.TB, err)
		return asked.Add(time.Duration(until*1000-now[0]*1_000_000-now[1]) * time.Microsecond)
	}
}

func (b *bed) do(command ...string) {
	b.TB.Helper()
	require.NoError(b.TB, b.Redis.Do(b.Ctx, b.Redis.B().Arbitrary(command...).Build()).Error())
}

// replicated blocks until replicas have what the primary had written before the call.
func (b *bed) replicated(primary *server.Node, replicas ...*server.Node) {
	b.TB.Helper()
	offset := func(n *server.Node, field string) int {
		at, err := strconv.Atoi(n.Info(b.Ctx, "replication", field))
		require.NoError(b.TB, err, "%s of %s", field, n.Addr)
		return at
	}
	written := offset(primary, "master_repl_offset")
	for _, r := range replicas {
		b.Eventually("replication", func() bool { return offset(r, "slave_repl_offset") >= written })
	}
}

// primary is the one among the nodes that others follow or that they follow; nil if there is none
// now. One that comes back may take itself for it for a while.
func (b *bed) primary(nodes []*server.Node) *server.Node {
	for _, n := range nodes {
		if yes, err := n.IsPrimary(b.Ctx); err == nil && yes {
			return n
		}
	}
	return nil
}

// owning returns the primary of a name's slot in a Cluster, as started.
func (b *bed) owning(name string) *server.Node {
	primary, _ := b.pair(name)
	return primary
}

// pair returns the primary of a name's slot in a Cluster, and its replica, as started.
func (b *bed) pair(name string) (primary, replica *server.Node) {
	nodes, i := b.D.Nodes(), int(cluster.Slot(prefix+name))*3/cluster.Slots
	primary, replica = nodes[i], nodes[i+3]
	if promoted, err := replica.IsPrimary(b.Ctx); err == nil && promoted { // by us, or by the Cluster itself
		return replica, primary
	}
	return primary, replica
}

// times is how often something is done, which the environment can change.
func times(t *testing.T, name string, n int) int {
	t.Helper()
	if text := os.Getenv(name); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err, name)
	}
	return n
}

func TestMain(m *testing.M) {
	reexec.Main(map[string]reexec.Role{holder: hold})
	flag.Parse()
	_ = flag.Set("test.parallel", "3") // tests here wait more than they compute
	code := m.Run()
	os.Exit(leaks.Check(code))
}
