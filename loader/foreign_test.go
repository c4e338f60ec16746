// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader"
)

const (
	impostor = "#!lua name=holdfast\nredis.register_function('their_lock', function() return 1 end)"
	squatter = "#!lua name=squatter\nredis.register_function('Holdfast_acquire', function() return 1 end)"
	neighbor = "#!lua name=neighbor\nredis.register_function('their_lock', function() return 1 end)"
)

func TestALibraryUnderOurNameIsRefused(t *testing.T) {
	d := server.Single(t, server.Owned())
	client, opt := connect(t, d)
	put(t, d.Nodes()[0], impostor)

	report, err := loader.Load(ctx, client, opt)
	require.ErrorIs(t, err, loader.ErrForeign)
	require.Equal(t, []loader.Action{loader.Refused}, actions(report))
	require.Equal(t, "foreign", report.Nodes[0].Before)
	_, err = loader.Unload(ctx, client, opt)
	require.ErrorIs(t, err, loader.ErrForeign)
	require.Equal(t, impostor, codeOf(t, d.Nodes()[0], "holdfast"))

	opt.Force = true
	report, err = loader.Load(ctx, client, opt)
	require.NoError(t, err)
	require.Equal(t, []loader.Action{loader.Replaced}, actions(report))
	requireEverywhere(t, d, functions.Source)
}

func TestALibraryWithOurFunctionsIsRefused(t *testing.T) {
	d := server.Single(t, server.Owned())
	client, opt := connect(t, d)
	put(t, d.Nodes()[0], squatter)
	put(t, d.Nodes()[0], neighbor)

	_, err := loader.Load(ctx, client, opt)
	var foreign *loader.ForeignError
	require.ErrorAs(t, err, &foreign)
	require.Equal(t, loader.ForeignError{Library: "squatter", Functions: []string{"Holdfast_acquire"}}, *foreign,
		"to the server it is the same name")
	require.Equal(t, squatter, codeOf(t, d.Nodes()[0], "squatter"))

	opt.Force = true
	report, err := loader.Load(ctx, client, opt)
	require.NoError(t, err)
	require.Equal(t, []loader.Action{loader.Loaded}, actions(report))
	requireEverywhere(t, d, functions.Source)
	require.Empty(t, codeOf(t, d.Nodes()[0], "squatter"))
	require.Equal(t, neighbor, codeOf(t, d.Nodes()[0], "neighbor"), "others are left alone")
}

// Forced, but the server does not take our source: what was deleted to make room is put back.
func TestADeletedLibraryIsPutBack(t *testing.T) {
	d := server.Single(t, server.Owned())
	client, opt := connect(t, d)
	put(t, d.Nodes()[0], squatter)
	opt.Force, opt.Source = true, functions.Source+"\nthis is not Lua"
	report, err := loader.Load(ctx, client, opt)
	require.Error(t, err)
	require.Equal(t, []loader.Action{loader.Failed}, actions(report))
	require.Equal(t, squatter, codeOf(t, d.Nodes()[0], "squatter"))
}

// A full server deletes libraries and loads none, not the one that was deleted either.
func TestAFullServerKeepsAnothersLibrary(t *testing.T) {
	d := server.Single(t, server.Owned())
	client, opt := connect(t, d)
	put(t, d.Nodes()[0], squatter)
	_, err := d.Nodes()[0].Do(ctx, "CONFIG", "SET", "maxmemory", "1")
	require.NoError(t, err)
	opt.Force = true
	_, err = loader.Load(ctx, client, opt)
	require.ErrorContains(t, err, "OOM")
	require.Equal(t, squatter, codeOf(t, d.Nodes()[0], "squatter"))
}

func TestUnloadLeavesOthersAlone(t *testing.T) {
	d := server.Single(t, server.Owned())
	client, opt := connect(t, d)
	d.Load(t)
	put(t, d.Nodes()[0], neighbor)
	_, err := loader.Unload(ctx, client, opt)
	require.NoError(t, err)
	require.Equal(t, neighbor, codeOf(t, d.Nodes()[0], "neighbor"))
}
