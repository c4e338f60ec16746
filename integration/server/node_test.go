// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

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
