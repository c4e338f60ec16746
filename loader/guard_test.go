package loader_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader"
)

// guardSource is the second library with another version.
func guardSource(version string) string {
	return strings.Replace(functions.GuardSource, "local VERSION = '"+functions.GuardVersion+"'", "local VERSION = '"+version+"'", 1)
}

// requireGuard says what must stand under the second library's name at every node.
func requireGuard(t *testing.T, d *server.Deployment, code string) {
	t.Helper()
	for _, n := range d.Nodes() {
		require.True(t, codeOf(t, n, functions.GuardLibrary) == code, "%s has another library", n.Addr)
	}
}

// The second library is looked after as the first is, and neither is touched with the other.
func TestTheGuardLibraryIsLoadedForItself(t *testing.T) {
	eachKind(t, func(t *testing.T, d *server.Deployment, primaries, replicas int) {
		client, opt := connect(t, d)
		guard := opt
		guard.Source = functions.GuardSource
		unchanged := repeat(primaries+replicas, loader.Unchanged, 0, "")

		report, err := loader.Verify(ctx, client, guard)
		require.ErrorIs(t, err, loader.ErrDiffers)
		require.Equal(t, repeat(primaries+replicas, loader.Missing, 0, ""), actions(report))
		require.Equal(t, functions.GuardLibrary, report.Library)

		report, err = loader.Load(ctx, client, guard)
		require.NoError(t, err)
		require.Equal(t, repeat(primaries, loader.Loaded, replicas, loader.Followed), actions(report))
		require.Equal(t, functions.GuardVersion, report.Nodes[0].After)
		requireGuard(t, d, functions.GuardSource)
		requireEverywhere(t, d, "")
		_, err = loader.Load(ctx, client, opt)
		require.NoError(t, err)

		for _, o := range []loader.Options{opt, guard} {
			report, err = loader.Load(ctx, client, o)
			require.NoError(t, err)
			require.Equal(t, unchanged, actions(report))
			report, err = loader.Verify(ctx, client, o)
			require.NoError(t, err)
			require.Equal(t, unchanged, actions(report))
		}

		report, err = loader.Unload(ctx, client, guard)
		require.NoError(t, err)
		require.Equal(t, repeat(primaries, loader.Unloaded, replicas, loader.Followed), actions(report))
		requireGuard(t, d, "")
		requireEverywhere(t, d, functions.Source)

		_, err = loader.Load(ctx, client, guard)
		require.NoError(t, err)
		_, err = loader.Unload(ctx, client, opt)
		require.NoError(t, err)
		requireGuard(t, d, functions.GuardSource)
		requireEverywhere(t, d, "")
	})
}

func TestTheGuardLibraryIsNotDowngraded(t *testing.T) {
	d := server.Single(t, server.Owned())
	client, opt := connect(t, d)
	d.Load(t)
	opt.Source = guardSource(olderGuard)
	_, err := loader.Load(ctx, client, opt)
	require.NoError(t, err)
	opt.Source = functions.GuardSource
	report, err := loader.Load(ctx, client, opt)
	require.NoError(t, err)
	require.Equal(t, []loader.Action{loader.Upgraded}, actions(report))

	opt.Source = guardSource(olderGuard)
	_, err = loader.Load(ctx, client, opt)
	var downgrade *loader.DowngradeError
	require.ErrorAs(t, err, &downgrade)
	require.Equal(t, loader.DowngradeError{Running: functions.GuardVersion, Offered: olderGuard}, *downgrade)
	requireGuard(t, d, functions.GuardSource)
	opt.Force = true
	report, err = loader.Load(ctx, client, opt)
	require.NoError(t, err)
	require.Equal(t, []loader.Action{loader.Downgraded}, actions(report))
	requireGuard(t, d, guardSource(olderGuard))
	requireEverywhere(t, d, functions.Source)
}

func TestForeignCodeInPlaceOfTheGuardLibraryIsRefused(t *testing.T) {
	d := server.Single(t, server.Owned())
	client, opt := connect(t, d)
	d.Load(t)
	opt.Source = functions.GuardSource
	for _, c := range []struct {
		name, code string
		want       loader.ForeignError
	}{
		{"holdfast_guard", "#!lua name=holdfast_guard\nredis.register_function('theirs', function() return 1 end)",
			loader.ForeignError{Library: "holdfast_guard"}},
		{"squatter", "#!lua name=squatter\nredis.register_function('holdfast_set_if', function() return 1 end)",
			loader.ForeignError{Library: "squatter", Functions: []string{"holdfast_set_if"}}},
	} {
		put(t, d.Nodes()[0], c.code)
		_, err := loader.Load(ctx, client, opt)
		var foreign *loader.ForeignError
		require.ErrorAs(t, err, &foreign)
		require.Equal(t, c.want, *foreign)
		_, err = loader.Verify(ctx, client, opt)
		require.ErrorIs(t, err, loader.ErrForeign)
		require.Equal(t, c.code, codeOf(t, d.Nodes()[0], c.name))
		_, err = loader.Verify(ctx, client, loader.Options{})
		require.NoError(t, err, "the locks' library is as it should be")

		forced := opt
		forced.Force = true
		_, err = loader.Load(ctx, client, forced)
		require.NoError(t, err)
		requireGuard(t, d, functions.GuardSource)
		_, err = loader.Unload(ctx, client, opt)
		require.NoError(t, err)
		requireEverywhere(t, d, functions.Source)
	}
}

// With the guard library upgraded, the locks' library still remembers.
func TestTheGuardLibraryEndsNoMemory(t *testing.T) {
	d := server.Single(t, server.Owned())
	client, opt := connect(t, d)
	d.Load(t)
	memory := func() []string {
		m, err := d.Nodes()[0].Do(ctx, "FCALL", functions.Memory, "0")
		require.NoError(t, err)
		values, err := m.AsStrSlice()
		require.NoError(t, err)
		return values
	}
	before := memory()
	for _, version := range []string{olderGuard, functions.GuardVersion} {
		opt.Source = guardSource(version)
		_, err := loader.Load(ctx, client, opt)
		require.NoError(t, err)
		require.Equal(t, before, memory())
	}
}
