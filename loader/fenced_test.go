// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader"
)

// fencedSource is the second library with another version.
func fencedSource(version string) string {
	return strings.Replace(functions.FencedSource, "local VERSION = '"+functions.FencedVersion+"'", "local VERSION = '"+version+"'", 1)
}

// requireFenced says what must stand under the second library's name at every node.
func requireFenced(t *testing.T, d *server.Deployment, code string) {
	t.Helper()
	for _, n := range d.Nodes() {
		require.True(t, codeOf(t, n, functions.FencedLibrary) == code, "%s has another library", n.Addr)
	}
}

// The second library is looked after as the first is, and neither is touched with the other.
func TestTheFencedLibraryIsLoadedForItself(t *testing.T) {
	eachKind(t, func(t *testing.T, d *server.Deployment, primaries, replicas int) {
		client, opt := connect(t, d)
		fenced := opt
		fenced.Source = functions.FencedSource
		unchanged := repeat(primaries+replicas, loader.Unchanged, 0, "")

		report, err := loader.Verify(ctx, client, fenced)
		require.ErrorIs(t, err, loader.ErrDiffers)
		require.Equal(t, repeat(primaries+replicas, loader.Missing, 0, ""), actions(report))
		require.Equal(t, functions.FencedLibrary, report.Library)

		report, err = loader.Load(ctx, client, fenced)
		require.NoError(t, err)
		require.Equal(t, repeat(primaries, loader.Loaded, replicas, loader.Followed), actions(report))
		require.Equal(t, functions.FencedVersion, report.Nodes[0].After)
		requireFenced(t, d, functions.FencedSource)
		requireEverywhere(t, d, "")
		_, err = loader.Load(ctx, client, opt)
		require.NoError(t, err)

		for _, o := range []loader.Options{opt, fenced} {
			report, err = loader.Load(ctx, client, o)
			require.NoError(t, err)
			require.Equal(t, unchanged, actions(report))
			report, err = loader.Verify(ctx, client, o)
			require.NoError(t, err)
			require.Equal(t, unchanged, actions(report))
		}

		report, err = loader.Unload(ctx, client, fenced)
		require.NoError(t, err)
		require.Equal(t, repeat(primaries, loader.Unloaded, replicas, loader.Followed), actions(report))
		requireFenced(t, d, "")
		requireEverywhere(t, d, functions.Source)

		_, err = loader.Load(ctx, client, fenced)
		require.NoError(t, err)
		_, err = loader.Unload(ctx, client, opt)
		require.NoError(t, err)
		requireFenced(t, d, functions.FencedSource)
		requireEverywhere(t, d, "")
	})
}

func TestTheFencedLibraryIsNotDowngraded(t *testing.T) {
	d := server.Single(t, server.Owned())
	client, opt := connect(t, d)
	d.Load(t)
	opt.Source = fencedSource(olderFenced)
	_, err := loader.Load(ctx, client, opt)
	require.NoError(t, err)
	opt.Source = functions.FencedSource
	report, err := loader.Load(ctx, client, opt)
	require.NoError(t, err)
	require.Equal(t, []loader.Action{loader.Upgraded}, actions(report))

	opt.Source = fencedSource(olderFenced)
	_, err = loader.Load(ctx, client, opt)
	require.NoError(t, err)
	requireFenced(t, d, functions.FencedSource)
	opt.Force = true
	report, err = loader.Load(ctx, client, opt)
	require.NoError(t, err)
	require.Equal(t, []loader.Action{loader.Downgraded}, actions(report))
	requireFenced(t, d, fencedSource(olderFenced))
	requireEverywhere(t, d, functions.Source)
}

func TestForeignCodeInPlaceOfTheFencedLibraryIsRefused(t *testing.T) {
	d := server.Single(t, server.Owned())
	client, opt := connect(t, d)
	d.Load(t)
	opt.Source = functions.FencedSource
	for _, c := range []struct {
		name, code string
		want       loader.ForeignError
	}{
		{"holdfast_fenced", "#!lua name=holdfast_fenced\nredis.register_function('theirs', function() return 1 end)",
			loader.ForeignError{Library: "holdfast_fenced"}},
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
		requireFenced(t, d, functions.FencedSource)
		_, err = loader.Unload(ctx, client, opt)
		require.NoError(t, err)
		requireEverywhere(t, d, functions.Source)
	}
}

// With the library holdfast_fenced upgraded, the locks' library still remembers.
func TestTheFencedLibraryEndsNoMemory(t *testing.T) {
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
	for _, version := range []string{olderFenced, functions.FencedVersion} {
		opt.Source = fencedSource(version)
		_, err := loader.Load(ctx, client, opt)
		require.NoError(t, err)
		require.Equal(t, before, memory())
	}
}
