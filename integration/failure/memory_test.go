// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// A primary that became a replica without a full resynchronisation, and is promoted again, still has
// the memory of the library. Its replication id is new, and so is what it can vouch for.
func TestAFormerPrimaryRemembersAnew(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		t.Parallel()
		b := lay(t, server.Replicated(t, 1, server.Owned(), server.WithFlavour(f)))
		one, other := b.D.Nodes()[0], b.D.Nodes()[1]
		memory := func(args ...string) []string {
			m, err := one.Do(b.Ctx, append([]string{"FCALL", functions.Memory, "0"}, args...)...)
			require.NoError(t, err)
			texts, err := m.AsStrSlice()
			require.NoError(t, err)
			return texts
		}
		swap := func(from, to *server.Node) {
			b.Eventually("a failover in good order", func() bool {
				_, err := from.Do(b.Ctx, "FAILOVER")
				return err == nil
			})
			b.Eventually("the roles have changed", func() bool {
				old, err := from.IsPrimary(b.Ctx)
				now, err2 := to.IsPrimary(b.Ctx)
				return err == nil && err2 == nil && !old && now && from.Info(b.Ctx, "replication", "master_link_status") == "up"
			})
		}
		m := memory()
		old := memory(m[0], m[1], "1")
		require.Equal(t, "1", old[2])
		const grant = "30000"
		swap(one, other)
		swap(other, one)
		require.NotEqual(t, "0", other.Info(b.Ctx, "stats", "sync_partial_ok"), "a full one would clear the memory anyway")
		again := memory()
		require.Equal(t, old[0], again[0], "the same process")
		require.NotEqual(t, old[1], again[1])
		require.NotEqual(t, "1", again[2])
		r, err := one.Do(b.Ctx, "FCALL", functions.Acquire, "1", prefix+"x", "owner", grant, functions.OptGuard, grant)
		require.NoError(t, err)
		values, err := r.ToArray()
		require.NoError(t, err)
		yes, err := values[0].AsInt64()
		require.NoError(t, err)
		require.Zero(t, yes, "%v", values)
	})
}
