// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader"
)

var ctx = context.Background()

func TestFromNothingToUnloaded(t *testing.T) {
	eachKind(t, func(t *testing.T, d *server.Deployment, primaries, replicas int) {
		client, opt := connect(t, d)

		report, err := loader.Verify(ctx, client, opt)
		require.ErrorIs(t, err, loader.ErrDiffers)
		require.Equal(t, repeat(primaries+replicas, loader.Missing, 0, ""), actions(report), "%v", err)

		var told []loader.NodeReport
		opt.Progress = func(node loader.NodeReport) { told = append(told, node) }
		report, err = loader.Load(ctx, client, opt)
		require.NoError(t, err)
		require.Equal(t, repeat(primaries, loader.Loaded, replicas, loader.Followed), actions(report))
		require.True(t, report.Changed())
		require.ElementsMatch(t, report.Nodes, told, "each node told once")
		for _, node := range report.Nodes {
			require.Equal(t, [2]string{"", functions.Version}, [2]string{node.Before, node.After})
		}
		requireEverywhere(t, d, functions.Source)
		opt.Progress = nil

		report, err = loader.Load(ctx, client, opt)
		require.NoError(t, err)
		require.Equal(t, repeat(primaries+replicas, loader.Unchanged, 0, ""), actions(report))
		require.False(t, report.Changed(), "a second run changes nothing")

		report, err = loader.Verify(ctx, client, opt)
		require.NoError(t, err)
		require.Equal(t, repeat(primaries+replicas, loader.Unchanged, 0, ""), actions(report))

		report, err = loader.Unload(ctx, client, opt)
		require.NoError(t, err)
		require.Equal(t, repeat(primaries, loader.Unloaded, replicas, loader.Followed), actions(report))
		requireEverywhere(t, d, "")

		report, err = loader.Unload(ctx, client, opt)
		require.NoError(t, err)
		require.False(t, report.Changed())
	})
}

func TestUpgradeAndRollBack(t *testing.T) {
	ofKinds(t, func(t *testing.T, d *server.Deployment, primaries, replicas int) {
		client, opt := connect(t, d)
		opt.Source = source(older)
		_, err := loader.Load(ctx, client, opt)
		require.NoError(t, err)

		opt.Source = ""
		report, err := loader.Load(ctx, client, opt)
		require.NoError(t, err)
		require.Equal(t, repeat(primaries, loader.Upgraded, replicas, loader.Followed), actions(report))
		require.Equal(t, older, report.Nodes[0].Before)
		require.Equal(t, functions.Version, report.Nodes[0].After)

		opt.Source = source(older)
		report, err = loader.Load(ctx, client, opt)
		require.NoError(t, err, "the newer one serves those who load the older one")
		newer := repeat(primaries+replicas, loader.Newer, 0, "")
		require.Equal(t, newer, actions(report))
		require.False(t, report.Changed())
		requireEverywhere(t, d, functions.Source)
		report, err = loader.Verify(ctx, client, opt)
		require.NoError(t, err)
		require.Equal(t, newer, actions(report))
		opt.DryRun = true
		report, err = loader.Load(ctx, client, opt)
		require.NoError(t, err)
		require.Equal(t, newer, actions(report))
		opt.DryRun = false

		opt.Force = true
		report, err = loader.Load(ctx, client, opt)
		require.NoError(t, err)
		require.Equal(t, repeat(primaries, loader.Downgraded, replicas, loader.Followed), actions(report))
		requireEverywhere(t, d, source(older))
	})
}

// A server that forgot everything with each upgrade would grant no guarded lock for a while.
func TestTheMemoryIsCarriedOverAnUpgrade(t *testing.T) {
	eachKind(t, func(t *testing.T, d *server.Deployment, _, _ int) {
		client, opt := connect(t, d)
		opt.Source = source(older)
		_, err := loader.Load(ctx, client, opt)
		require.NoError(t, err)
		since := func() (all []string) {
			for _, node := range d.Nodes() {
				if primary, err := node.IsPrimary(ctx); err != nil || !primary {
					continue
				}
				m, err := node.Do(ctx, "FCALL", functions.Memory, "0")
				require.NoError(t, err)
				values, err := m.AsStrSlice()
				require.NoError(t, err)
				all = append(all, values...)
			}
			return all
		}
		before := since()
		opt.Source = ""
		_, err = loader.Load(ctx, client, opt)
		require.NoError(t, err)
		require.Equal(t, before, since())
		opt.Source, opt.Force = source(older), true
		_, err = loader.Load(ctx, client, opt)
		require.NoError(t, err)
		require.Equal(t, before, since())
	})
}

func TestDryRunWritesNothing(t *testing.T) {
	d := server.Cluster(t)
	client, opt := connect(t, d)
	opt.DryRun = true
	report, err := loader.Load(ctx, client, opt)
	require.NoError(t, err)
	require.Equal(t, repeat(3, "would be loaded", 3, loader.WouldFollow), actions(report))
	require.True(t, report.Changed())
	requireEverywhere(t, d, "")

	d.Load(t)
	report, err = loader.Load(ctx, client, opt)
	require.NoError(t, err)
	require.Equal(t, repeat(6, loader.Unchanged, 0, ""), actions(report))
	require.False(t, report.Changed())

	report, err = loader.Unload(ctx, client, opt)
	require.NoError(t, err)
	require.Equal(t, repeat(3, "would be unloaded", 3, loader.WouldFollow), actions(report))
	requireEverywhere(t, d, functions.Source)
}

// Where one primary has a newer library, the others get the one that is offered.
func TestANewerLibraryHoldsNobodyBack(t *testing.T) {
	d := server.Cluster(t)
	client, opt := connect(t, d)
	opt.Source = source(older)
	put(t, d.Nodes()[1], functions.Source)
	report, err := loader.Load(ctx, client, opt)
	require.NoError(t, err)
	require.Equal(t, loader.Newer, entry(t, report, d.Nodes()[1]).Action)
	for _, i := range []int{0, 2} {
		require.Equal(t, loader.Loaded, entry(t, report, d.Nodes()[i]).Action)
		require.True(t, codeOf(t, d.Nodes()[i], functions.Library) == opt.Source)
	}
}

// Callers of another contract would not understand the library: it is not put over theirs unless
// that is forced.
func TestAnotherContractIsRefused(t *testing.T) {
	d := server.Single(t, server.Owned())
	client, opt := connect(t, d)
	old := source("1.99.0")
	put(t, d.Nodes()[0], old)

	report, err := loader.Load(ctx, client, opt)
	var contract *loader.VersionError
	require.ErrorAs(t, err, &contract)
	require.ErrorIs(t, err, loader.ErrContract)
	require.Equal(t, loader.VersionError{Running: "1.99.0", Offered: functions.Version}, *contract)
	require.Equal(t, []loader.Action{loader.Refused}, actions(report))
	requireEverywhere(t, d, old)
	_, err = loader.Verify(ctx, client, opt)
	require.ErrorIs(t, err, loader.ErrDiffers)
	require.ErrorIs(t, err, loader.ErrContract)

	opt.Force = true
	report, err = loader.Load(ctx, client, opt)
	require.NoError(t, err)
	require.Equal(t, []loader.Action{loader.Upgraded}, actions(report))
	requireEverywhere(t, d, functions.Source)
}

// One primary of three refuses: the others stay as they are, so that a deployment is not left half
// downgraded.
func TestOneRefusalHoldsAllBack(t *testing.T) {
	d := server.Cluster(t)
	client, opt := connect(t, d)
	put(t, d.Nodes()[1], source("9.0.0"))
	before := codes(t, d)
	report, err := loader.Load(ctx, client, opt)
	require.ErrorIs(t, err, loader.ErrContract)
	require.Equal(t, loader.Refused, entry(t, report, d.Nodes()[1]).Action)
	require.Equal(t, loader.HeldBack, entry(t, report, d.Nodes()[0]).Action, "%+v", report)
	require.Equal(t, loader.HeldBack, entry(t, report, d.Nodes()[2]).Action)
	require.False(t, report.Changed())
	require.Empty(t, before[d.Nodes()[0].Addr])
	require.Empty(t, codes(t, d)[d.Nodes()[0].Addr])
}

func TestVerifySaysWhatDiffers(t *testing.T) {
	d := server.Single(t, server.Owned())
	client, opt := connect(t, d)
	for _, c := range []struct {
		source string
		want   loader.Action
	}{
		{source("1.9.0"), loader.Outdated},
		{source(older), loader.Outdated},
		{source("10.0.0"), loader.Newer},
		{functions.Source + "\n-- patched", loader.Differs},
		{"#!lua name=holdfast\nredis.register_function('holdfast_mine', function() end)", loader.Foreign},
	} {
		put(t, d.Nodes()[0], c.source)
		report, err := loader.Verify(ctx, client, opt)
		require.ErrorIs(t, err, loader.ErrDiffers)
		require.Equal(t, []loader.Action{c.want}, actions(report))
		var node *loader.NodeError
		require.ErrorAs(t, err, &node)
		require.Equal(t, d.Nodes()[0].Addr, node.Addr)
		require.True(t, codeOf(t, d.Nodes()[0], functions.Library) == c.source, "verify writes nothing")
	}
}

// Verify names what a server can lose locks by.
func TestVerifyNamesRisks(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		d := server.Replicated(t, 1, server.Owned(), server.WithFlavour(f))
		client, opt := connect(t, d)
		d.Load(t)
		set := func(pairs ...string) {
			for _, n := range d.Nodes() {
				_, err := n.Do(ctx, append([]string{"CONFIG", "SET"}, pairs...)...)
				require.NoError(t, err)
			}
		}
		verify := func() (primary, replica []string) {
			report, err := loader.Verify(ctx, client, opt)
			require.NoError(t, err)
			return report.Nodes[0].Risks, report.Nodes[1].Risks
		}
		set("save", "", "appendonly", "no")
		const cutOff = "min-replicas-to-write 0: cut off from its 1 replicas it goes on granting locks"
		const nothing = "no persistence: after a restart it knows no lock, and no functions"
		primary, replica := verify()
		require.Equal(t, []string{nothing, cutOff}, primary)
		require.Equal(t, []string{nothing}, replica)
		set("save", "60 1", "min-replicas-to-write", "1", "maxmemory-policy", "allkeys-lru", "maxmemory", "100mb")
		primary, replica = verify()
		require.Equal(t, []string{"appendonly no: after a restart it knows the locks of its last RDB file",
			"maxmemory-policy allkeys-lru: it evicts locks when its memory is full"}, primary)
		require.Equal(t, primary, replica)
		set("appendonly", "yes", "appendfsync", "everysec", "maxmemory-policy", "noeviction")
		primary, _ = verify()
		require.Equal(t, []string{"appendfsync everysec: after a crash of its machine it forgets the locks of the last moments"}, primary)
		set("appendfsync", "always")
		primary, replica = verify()
		require.Empty(t, primary)
		require.Empty(t, replica)
		_, err := d.Nodes()[0].Do(ctx, "ACL", "SETUSER", "default", "-config|get")
		require.NoError(t, err)
		primary, _ = verify()
		require.Len(t, primary, 1)
		require.Contains(t, primary[0], "its settings are unknown")
		require.NotContains(t, primary[0], "the loader needs", "that is not what it lacks")
	})
}

func TestChangedCodeOfTheSameVersionIsReplaced(t *testing.T) {
	d := server.Single(t, server.Owned())
	client, opt := connect(t, d)
	put(t, d.Nodes()[0], functions.Source+"\n-- patched")
	report, err := loader.Load(ctx, client, opt)
	require.NoError(t, err)
	require.Equal(t, []loader.Action{loader.Replaced}, actions(report))
	requireEverywhere(t, d, functions.Source)
}

// A node that refuses the user or the password says so by an error of its own.
func TestWrongPassword(t *testing.T) {
	d := server.Replicated(t, 1)
	client, opt := connect(t, d)
	wrong := rueidis.ClientOption{Username: "nobody", Password: "nonsense"}
	opt.Dial = loader.Dialer(wrong)
	report, err := loader.Load(context.Background(), client, opt)
	require.ErrorIs(t, err, loader.ErrCredentials)
	require.Len(t, report.Nodes, 2)
	require.Equal(t, loader.Loaded, report.Nodes[0].Action)
	require.Equal(t, loader.Failed, report.Nodes[1].Action)
	require.ErrorIs(t, report.Nodes[1].Err, loader.ErrCredentials)
}

// What a node said counts more than that there was no time to ask it again.
func TestTheReasonIsNotTheEndOfTheTime(t *testing.T) {
	d := server.Replicated(t, 1)
	client, opt := connect(t, d)
	opt.Timeout = 4 * time.Second
	refused := loader.Dialer(rueidis.ClientOption{Username: "nobody", Password: "nonsense"})
	var dials atomic.Int32
	opt.Dial = func(ctx context.Context, addr string) (rueidis.Client, error) {
		if dials.Add(1) <= 2 { // for the plan, and the first look after it
			return refused(ctx, addr)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	_, err := loader.Load(ctx, client, opt)
	require.ErrorIs(t, err, loader.ErrCredentials)
	require.Greater(t, dials.Load(), int32(2))
}

// Without Dial the replicas of a single server cannot be looked at. That is said, and is no
// failure.
func TestWithoutDialReplicasAreNotChecked(t *testing.T) {
	d := server.Replicated(t, 1)
	client, _ := connect(t, d)
	for range 2 {
		report, err := loader.Load(ctx, client, loader.Options{})
		require.NoError(t, err)
		require.Equal(t, loader.NotChecked, report.Nodes[1].Action)
		require.Contains(t, report.Nodes[1].Detail, "Options.Dial")
	}
}

// A deploy that was pointed at a replica loads the primary.
func TestAClientOfAReplicaLeadsToThePrimary(t *testing.T) {
	d := server.Replicated(t, 2)
	connect(t, d)
	opt := d.ClientOption()
	opt.InitAddress = []string{d.Nodes()[1].Addr}
	opt.DisableCache = true
	client := open(t, opt)
	report, err := loader.Load(ctx, client, loader.Options{Dial: loader.Dialer(opt)})
	require.NoError(t, err)
	require.Equal(t, repeat(1, loader.Loaded, 2, loader.Followed), actions(report))
	requireEverywhere(t, d, functions.Source)

	report, err = loader.Load(ctx, client, loader.Options{})
	require.ErrorIs(t, err, loader.ErrNoConnection, "without Dial there is no way to the primary")
	require.Equal(t, loader.Failed, report.Nodes[0].Action)
}

func TestASourceThatIsNotOurs(t *testing.T) {
	client, opt := connect(t, server.Single(t, server.Owned()))
	for _, source := range []string{
		"#!lua name=holdfast\nredis.register_function('x', function() end)",
		"#!lua name=holdfas\nlocal VERSION = '1.0.0'",
		"\n" + functions.Source,
	} {
		opt.Source = source
		_, err := loader.Load(ctx, client, opt)
		require.ErrorIs(t, err, loader.ErrSource)
	}
}
