// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/reexec"
	"github.com/holdfast-go/holdfast/integration/server"
)

const soon = 15 * time.Second

func TestMain(m *testing.M) {
	reexec.Main(map[string]reexec.Role{starter: start})
	os.Exit(leaks.Check(m.Run()))
}

func TestReplace(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		n := server.Single(t, server.WithFlavour(f), server.WithConfig("appendonly", "yes")).Nodes()[0]
		require.NoError(t, do(n, "SET", "k", "v"))
		require.NoError(t, do(n, "SAVE"))
		require.NoError(t, n.Replace())
		require.Zero(t, size(t, n))
		require.NoError(t, do(n, "SET", "l", "w"))
		require.NoError(t, n.Restart())
		require.EqualValues(t, 1, size(t, n), "what the new one has is persisted")
		require.NoError(t, n.Kill())
		require.NoError(t, n.Replace())
		require.Zero(t, size(t, n))
	})
}

func size(t *testing.T, n *server.Node) int64 {
	t.Helper()
	m, err := n.Do(context.Background(), "DBSIZE")
	require.NoError(t, err)
	size, err := m.ToInt64()
	require.NoError(t, err)
	return size
}

func do(n *server.Node, command ...string) error {
	_, err := n.Do(context.Background(), command...)
	return err
}

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
