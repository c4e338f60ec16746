// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/fence"
	"github.com/holdfast-go/holdfast/client/internal/holding"
)

// under makes a context one under a lock, as a Lock's own context is.
type under struct{ context.Context }

func (u under) Value(key any) any {
	if all, ok := key.(*holding.Under); ok {
		*all = append(*all, holding.New(holding.Grant{Name: "stock:7", Key: "lock:stock:7"}))
	}
	return u.Context.Value(key)
}

// After its Release a lock is one that is not held: that is a kind of error, and ErrReleased is none.
func TestAReleasedLockIsNotHeld(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(client.ErrReleased)
	for _, use := range []func(context.Context, *sql.Tx, ...string) error{fence.PostgreSQL.Claim, fence.PostgreSQL.Check} {
		err := use(under{ctx}, new(sql.Tx)) // the database is not asked any more
		require.ErrorIs(t, err, client.ErrNotHeld)
		require.ErrorIs(t, err, client.ErrInvalid)
		require.NotErrorIs(t, err, client.ErrReleased)
		require.ErrorContains(t, err, "released (context canceled)")
	}
}
