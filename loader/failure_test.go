// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"context"
	"errors"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader"
)

// meddler is a client that does something directly before it sends a command for the first time.
type meddler struct {
	rueidis.Client
	before string // the command's first words
	do     func()
	once   *sync.Once
}

func meddle(client rueidis.Client, before string, do func()) rueidis.Client {
	return meddler{client, before, do, &sync.Once{}}
}

func (m meddler) Nodes() map[string]rueidis.Client {
	nodes := map[string]rueidis.Client{}
	for addr, node := range m.Client.Nodes() {
		nodes[addr] = single{meddler{node, m.before, m.do, m.once}}
	}
	return nodes
}

func (m meddler) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if strings.HasPrefix(strings.Join(cmd.Commands(), " "), m.before) {
		m.once.Do(m.do)
	}
	return m.Client.Do(ctx, cmd)
}

// single is a client of one node: its only node is itself.
type single struct{ meddler }

func (s single) Nodes() map[string]rueidis.Client {
	for addr := range s.Client.Nodes() {
		return map[string]rueidis.Client{addr: s}
	}
	return nil
}

// swap makes a replica the primary of its primary, and blocks until it is.
func swap(t *testing.T, primary, replica *server.Node) {
	do := func(n *server.Node, command ...string) {
		reply, err := n.Do(context.Background(), command...)
		require.NoError(t, err)
		_, err = reply.ToString()
		require.NoError(t, err)
	}
	host, port, err := net.SplitHostPort(replica.Addr)
	require.NoError(t, err)
	do(replica, "REPLICAOF", "NO", "ONE")
	do(primary, "REPLICAOF", host, port)
}

// The failover happens directly before FUNCTION LOAD (the server answers READONLY), before the plan
// (the adapter finds a replica and sends nothing), or before the first ROLE (the loader goes to the
// new primary at once).
func TestAPrimaryDemotedBeforeTheWrite(t *testing.T) {
	for _, before := range []string{"FUNCTION LOAD", "FUNCTION LIST", "ROLE"} {
		t.Run(before, func(t *testing.T) {
			d := server.Replicated(t, 1)
			client, opt := connect(t, d)
			old, successor := d.Nodes()[0], d.Nodes()[1]
			client = meddle(client, before, func() { swap(t, old, successor) })

			report, err := loader.Load(ctx, client, opt)
			require.NoError(t, err)
			require.Equal(t, loader.Loaded, entry(t, report, successor).Action)
			require.Equal(t, cluster.Primary, entry(t, report, successor).Role)
			require.Equal(t, loader.Followed, entry(t, report, old).Action)
			requireEverywhere(t, d, functions.Source)
		})
	}
}

func TestAClusterFailoverBeforeTheWrite(t *testing.T) {
	d := server.Cluster(t)
	client, opt := connect(t, d)
	opt.Timeout = soon
	replica := d.Nodes()[3]
	client = meddle(client, "FUNCTION LOAD", func() {
		require.Eventually(t, func() bool {
			_, err := replica.Do(ctx, "CLUSTER", "FAILOVER", "TAKEOVER")
			return err == nil && isPrimary(replica)
		}, soon, pollEvery)
		require.Eventually(t, func() bool { return !isPrimary(d.Nodes()[0]) }, soon, pollEvery)
	})
	report, err := loader.Load(ctx, client, opt)
	require.NoError(t, err)
	require.Len(t, report.Nodes, 6)
	requireEverywhere(t, d, functions.Source)
	require.Equal(t, cluster.Primary, entry(t, report, replica).Role)
}

// What was a primary and is down has no slots any more: nothing depends on it, and Load and Verify agree.
func TestAPrimaryThatWasReplaced(t *testing.T) {
	d := server.Cluster(t)
	client, opt := connect(t, d)
	require.NoError(t, d.Nodes()[0].Kill())
	heir := regexp.MustCompile(regexp.QuoteMeta(d.Nodes()[3].Addr) + `@\d+\S* (myself,)?master `)
	for _, n := range d.Nodes()[1:] { // whichever is asked
		require.Eventually(t, func() bool {
			m, err := n.Do(ctx, "CLUSTER", "NODES")
			text, _ := m.ToString()
			return err == nil && heir.MatchString(text)
		}, soon, pollEvery)
	}
	require.Eventually(t, func() bool {
		nodes, err := cluster.Topology(ctx, client)
		return err == nil && slices.ContainsFunc(nodes, func(n cluster.Node) bool { return n.Down && len(n.Slots) == 0 })
	}, soon, pollEvery)
	for _, do := range []func(context.Context, rueidis.Client, loader.Options) (loader.Report, error){
		loader.Load, loader.Verify, loader.Unload,
	} {
		report, err := do(ctx, client, opt)
		require.NoError(t, err)
		require.Equal(t, loader.NotChecked, entry(t, report, d.Nodes()[0]).Action)
	}
}

// A primary that joins while others are loaded is loaded too.
func TestAPrimaryThatJoinsMeanwhile(t *testing.T) {
	d := server.Cluster(t)
	client, opt := connect(t, d)
	opt.Timeout = soon
	do := func(n *server.Node, words ...string) string {
		reply, err := n.Do(ctx, words...)
		require.NoError(t, err, words)
		text, err := reply.ToString()
		require.NoError(t, err)
		return text
	}
	late, others := d.Nodes()[5], d.Nodes()[:5]
	id := do(late, "CLUSTER", "MYID")
	do(late, "CLUSTER", "RESET", "HARD")
	for _, n := range others {
		do(n, "CLUSTER", "FORGET", id)
	}
	client = meddle(client, "FUNCTION LOAD", func() {
		for _, n := range others {
			do(n, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(late.Ports()[0]), strconv.Itoa(late.Ports()[1]))
		}
		id := do(late, "CLUSTER", "MYID")
		for _, n := range others {
			require.Eventually(t, func() bool { return strings.Contains(do(n, "CLUSTER", "NODES"), id) }, soon, pollEvery)
		}
	})
	report, err := loader.Load(ctx, client, opt)
	require.NoError(t, err)
	require.Equal(t, loader.Loaded, entry(t, report, late).Action)
	requireEverywhere(t, d, functions.Source)
}

func isPrimary(n *server.Node) bool {
	reply, err := n.Do(context.Background(), "ROLE")
	if err != nil {
		return false
	}
	fields, err := reply.ToArray()
	if err != nil || len(fields) == 0 {
		return false
	}
	role, _ := fields[0].ToString()
	return role == "master"
}

// The server ran FUNCTION LOAD, and the connection broke before its reply: what is found afterwards
// counts.
func TestALostReply(t *testing.T) {
	d := server.Single(t, server.Owned())
	proxy := server.NewProxy(t, d.Nodes()[0].Addr)
	opt := rueidis.ClientOption{InitAddress: []string{proxy.Addr}, DisableCache: true, PipelineMultiplex: -1}
	client := open(t, opt)
	proxy.DropReplies(1, "register_function")
	report, err := loader.Load(ctx, client, loader.Options{})
	require.NoError(t, err)
	require.Equal(t, 1, proxy.Dropped())
	require.Equal(t, []loader.Action{loader.Loaded}, actions(report))
	requireEverywhere(t, d, functions.Source)
}

// One primary hangs. The others are loaded, and calling Load again does the rest.
func TestOnePrimaryHangs(t *testing.T) {
	d := server.Cluster(t, server.WithConfig("cluster-node-timeout", "60000"))
	client, opt := connect(t, d)
	opt.Timeout = 4 * time.Second // in which the others answer, on a busy machine too
	require.NoError(t, d.Nodes()[0].Pause())
	report, err := loader.Load(ctx, client, opt)
	require.Error(t, err)
	var node *loader.NodeError
	require.ErrorAs(t, err, &node)
	require.Equal(t, loader.Failed, entry(t, report, d.Nodes()[0]).Action)
	for _, n := range d.Nodes()[1:3] {
		require.Equal(t, loader.Loaded, entry(t, report, n).Action, "%+v", report)
	}
	opt.Timeout = time.Second
	_, err = loader.Verify(ctx, client, opt)
	require.Error(t, err)

	require.NoError(t, d.Nodes()[0].Resume())
	opt.Timeout = soon
	require.Eventually(t, func() bool {
		_, err := loader.Load(ctx, client, opt)
		return err == nil
	}, soon, pollEvery)
	requireEverywhere(t, d, functions.Source)
}

// A replica that does not follow in time is a failure of that replica only, and is said.
func TestAReplicaHangs(t *testing.T) {
	d := server.Replicated(t, 2)
	client, opt := connect(t, d)
	opt.Timeout = 5 * time.Second
	require.NoError(t, d.Nodes()[2].Pause())
	report, err := loader.Load(ctx, client, opt)
	require.Error(t, err)
	require.Equal(t, loader.Loaded, entry(t, report, d.Nodes()[0]).Action)
	require.Equal(t, loader.Followed, entry(t, report, d.Nodes()[1]).Action)
	require.Equal(t, loader.Failed, entry(t, report, d.Nodes()[2]).Action)
}

// A primary that joins a cluster later, without slots and without the library, is found, though
// CLUSTER SLOTS does not name it.
func TestVerifyFindsANewPrimary(t *testing.T) {
	d := server.Cluster(t)
	client, opt := connect(t, d)
	_, err := loader.Load(ctx, client, opt)
	require.NoError(t, err)

	extra := server.Single(t, server.Owned(), server.WithConfig("cluster-enabled", "yes"))
	host, port, err := net.SplitHostPort(extra.Nodes()[0].Addr)
	require.NoError(t, err)
	_, err = d.Nodes()[0].Do(ctx, "CLUSTER", "MEET", host, port)
	require.NoError(t, err)
	var report loader.Report
	require.Eventually(t, func() bool {
		report, err = loader.Verify(ctx, client, opt)
		return slices.Contains(actions(report), loader.Missing)
	}, soon, pollEvery)
	require.ErrorIs(t, err, loader.ErrDiffers)
	require.Equal(t, loader.Missing, entry(t, report, extra.Nodes()[0]).Action)

	require.Eventually(t, func() bool {
		_, err := loader.Load(ctx, client, opt)
		return err == nil && codeOf(t, extra.Nodes()[0], functions.Library) == functions.Source
	}, soon, pollEvery)
}

func TestPermissions(t *testing.T) {
	const least = "+ping +role +function|list +function|load"
	server.Each(t, func(t *testing.T, f server.Flavour) {
		d := server.Single(t, server.WithFlavour(f), server.WithACL(
			"user deployer on >secret resetkeys resetchannels -@all "+least,
			"user unloader on >secret resetkeys resetchannels -@all "+least+" +function|delete",
			"user reader on >secret resetkeys resetchannels -@all +ping +role +function|list"))
		as := func(user string) rueidis.Client {
			opt := d.ClientOption()
			opt.Username, opt.Password, opt.DisableCache, opt.ForceSingleClient = user, "secret", true, true
			return open(t, opt)
		}
		report, err := loader.Load(ctx, as("reader"), loader.Options{})
		require.ErrorIs(t, err, loader.ErrPermission)
		require.ErrorContains(t, err, "+function|load", "the error says what is needed")
		require.Equal(t, []loader.Action{loader.Failed}, actions(report))
		_, err = loader.Verify(ctx, as("reader"), loader.Options{})
		require.ErrorIs(t, err, loader.ErrDiffers)

		_, err = loader.Load(ctx, as("deployer"), loader.Options{})
		require.NoError(t, err)
		_, err = loader.Unload(ctx, as("deployer"), loader.Options{})
		require.ErrorIs(t, err, loader.ErrPermission)
		_, err = loader.Unload(ctx, as("unloader"), loader.Options{})
		require.NoError(t, err)
	})
}

func TestPermissionsInACluster(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		d := server.Cluster(t, server.WithFlavour(f), server.WithACL("user deployer on >secret resetkeys resetchannels -@all "+
			"+ping +role +function|list +function|load +function|delete +cluster|nodes +cluster|slots +cluster|shards"))
		connect(t, d)
		opt := d.ClientOption()
		opt.Username, opt.Password, opt.DisableCache = "deployer", "secret", true
		client := open(t, opt)
		_, err := loader.Load(ctx, client, loader.Options{Dial: loader.Dialer(opt)})
		require.NoError(t, err)
		requireEverywhere(t, d, functions.Source)
		_, err = loader.Unload(ctx, client, loader.Options{Dial: loader.Dialer(opt)})
		require.NoError(t, err)
	})
}

func TestAServerThatIsGone(t *testing.T) {
	d := server.Single(t, server.Owned())
	client, opt := connect(t, d)
	require.NoError(t, d.Nodes()[0].Kill())
	_, err := loader.Load(ctx, client, opt)
	require.ErrorContains(t, err, d.Nodes()[0].Addr)
}

// A command that was renamed is no sign of an old server, unless it is FUNCTION.
func TestARenamedCommand(t *testing.T) {
	for _, command := range []string{"FUNCTION", "ROLE"} {
		d := server.Single(t, server.Owned(), server.WithConfig("rename-command", command+` ""`))
		_, err := loader.Load(ctx, open(t, d.ClientOption()), loader.Options{})
		require.ErrorContains(t, err, "unknown command '"+command+"'")
		require.Equal(t, command == "FUNCTION", errors.Is(err, loader.ErrUnsupported), "%v", err)
	}
}
