// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

func TestExternal(t *testing.T) {
	f, err := server.Default()
	require.NoError(t, err)
	theirs := server.Single(t, server.WithFlavour(f), server.WithConfig("requirepass", "secret"))
	addr := theirs.Addrs()[0]

	t.Setenv("HOLDFAST_REDIS", addr)
	_, err = server.Start(t.Context(), server.Spec{})
	require.ErrorContains(t, err, "NOAUTH")

	t.Setenv("HOLDFAST_REDIS", "redis://:secret@"+addr+"/0")
	require.Equal(t, []server.Flavour{{Runtime: server.External}}, server.Matrix(t))
	d := server.Single(t)
	require.Equal(t, theirs.Addrs(), d.Addrs())
	require.NoError(t, do(d.Nodes()[0], "SET", "k", "v"))
	d.Load(t)
	require.NoError(t, d.Close())
	require.NoError(t, do(theirs.Nodes()[0], "PING"), "Close leaves it")

	for _, own := range []server.Option{server.Owned(), server.WithConfig("maxmemory", "10mb")} {
		ours := server.Single(t, own)
		require.NotEqual(t, theirs.Addrs(), ours.Addrs())
		require.NoError(t, ours.Nodes()[0].Kill())
	}
}
