// SPDX-License-Identifier: Apache-2.0

package fencing

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/fence"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// What an old holder does after a newer one has claimed is refused, and changes nothing. The same
// holder may go on.
func TestOldHoldersAreRefused(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		holders := late(t, 3, "stock:7")
		old, present, next := holders[0], holders[1], holders[2]
		require.NoError(t, d.checks(next), "before the first claim too")
		require.NoError(t, d.sells(old))
		require.NoError(t, d.sells(present))
		require.NoError(t, d.sells(present))
		for _, err := range []error{d.sells(old), d.claims(old), d.checks(old)} {
			require.ErrorIs(t, err, fence.ErrStale)
			require.ErrorIs(t, err, client.ErrLost)
			require.ErrorContains(t, err, `"stock:7"`)
		}
		require.EqualValues(t, 997, d.remaining())
		require.Equal(t, client.Fence(present), d.fence())
		require.NoError(t, d.checks(next))
		require.NoError(t, d.sells(present), "a check raises nothing")
		require.NoError(t, d.sells(next))
		require.ErrorIs(t, d.sells(present), fence.ErrStale)
	})
}

// A claim behind a savepoint goes with it, and with PostgreSQL its lock of the row too.
func TestSavepoints(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		holders := late(t, 2, "stock:7")
		require.NoError(t, d.claims(holders[0]))
		require.NoError(t, d.in(holders[1], func(tx *sql.Tx) error {
			_, err := tx.Exec("SAVEPOINT here")
			require.NoError(t, err)
			require.NoError(t, d.Claim(holders[1], tx))
			_, err = tx.Exec("ROLLBACK TO SAVEPOINT here")
			return err
		}))
		require.NoError(t, d.sells(holders[0]), "nobody has claimed")

		require.NoError(t, d.in(holders[1], func(tx *sql.Tx) error {
			require.NoError(t, d.Claim(holders[1], tx))
			_, err := tx.Exec("SAVEPOINT here")
			require.NoError(t, err)
			require.NoError(t, sell(holders[1], tx))
			_, err = tx.Exec("ROLLBACK TO SAVEPOINT here")
			return err
		}))
		require.ErrorIs(t, d.sells(holders[0]), fence.ErrStale)
		require.EqualValues(t, 999, d.remaining())
	})
}

// The locks are those of the context, so a token is never compared with one of another lock.
func TestLocksAreThoseOfTheContext(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		for _, use := range []func(context.Context, ...string) error{d.claims, d.checks} {
			err := use(t.Context())
			require.ErrorIs(t, err, client.ErrArgument)
			require.ErrorContains(t, err, "under no lock")
		}
		c := locktest.New(t).Client(client.Config{})
		require.NoError(t, c.Do(t.Context(), "leader", func(outer context.Context) error {
			return c.Do(outer, "stock:7", func(ctx context.Context) error {
				for _, use := range []func(context.Context, ...string) error{d.claims, d.checks} {
					err := use(ctx, "stock:7", "stock:8")
					require.ErrorIs(t, err, client.ErrArgument)
					require.ErrorContains(t, err, `"stock:8"`)
				}
				require.EqualValues(t, -1, d.fence())
				require.NoError(t, d.claims(ctx, "stock:7"))
				require.EqualValues(t, 1, d.number("SELECT COUNT(*) FROM holdfast_fences"))
				require.Equal(t, client.Fence(ctx), d.fence())
				require.NoError(t, d.claims(ctx))
				require.EqualValues(t, 2, d.number("SELECT COUNT(*) FROM holdfast_fences"))
				require.Equal(t, client.Fence(outer), d.number("SELECT MIN(fence) FROM holdfast_fences"))
				return c.Do(ctx, "stock:7", func(again context.Context) error { return d.claims(again) })
			})
		}))
	})
}

// One stale lock of several refuses all.
func TestSeveralLocks(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		c := locktest.New(t).Client(client.Config{})
		both, err := c.AcquireAll(t.Context(), []string{"account:2", "account:1"})
		require.NoError(t, err)
		old := context.WithoutCancel(both.Context())
		require.NoError(t, both.Release(t.Context()))
		require.NoError(t, d.claims(old))
		require.NoError(t, c.Do(t.Context(), "account:1", func(ctx context.Context) error { return d.claims(ctx) }))
		err = d.claims(old)
		require.ErrorIs(t, err, fence.ErrStale)
		require.ErrorContains(t, err, `"account:1"`)
		require.NoError(t, d.claims(old, "account:2"))
	})
}

// The transaction of a lock that is lost is rolled back, and what is returned is the loss.
func TestALossEndsTheTransaction(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		s := locktest.New(t)
		lock, err := s.Client(client.Config{Lease: 3 * time.Second}).Acquire(t.Context(), "stock:7")
		require.NoError(t, err)
		ctx := lock.Context()
		tx := d.begin(ctx, sql.LevelDefault)
		require.NoError(t, d.Claim(ctx, tx))
		require.NoError(t, sell(ctx, tx))
		s.Take("stock:7", time.Minute)
		<-ctx.Done()
		require.ErrorIs(t, d.Claim(ctx, tx), client.ErrLost)
		require.Error(t, tx.Commit())
		require.EqualValues(t, 1000, d.remaining())
		require.ErrorIs(t, lock.Release(t.Context()), client.ErrLost)
	})
}

// Names differ by each byte. One that the column cannot hold is an error, not another name.
func TestNames(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		names := []string{"stock:7", "Stock:7", "stock:7 ", "stöck:7", "stock:7'; DROP TABLE stock; --", "%s $1 ?"}
		for i, name := range names {
			holders := late(t, 2, name)
			require.NoError(t, d.claims(holders[1]), name)
			require.ErrorIs(t, d.claims(holders[0]), fence.ErrStale, name)
			require.EqualValues(t, i+1, d.number("SELECT COUNT(*) FROM holdfast_fences"), name)
		}
		for _, name := range []string{strings.Repeat("0123456789", 1000), "\xff", "a\x00b"} {
			holders := late(t, 2, name)
			for _, use := range []func(context.Context, ...string) error{d.claims, d.checks} {
				if err := use(holders[1]); err == nil {
					require.NoError(t, d.claims(holders[1]), "%.10q", name)
					require.ErrorIs(t, use(holders[0]), fence.ErrStale, "%.10q", name)
				} else {
					require.NotErrorIs(t, err, sql.ErrNoRows)
					t.Logf("%.10q: %v", name, err)
				}
			}
		}
	})
}

// A trigger refuses lower tokens, whoever writes, and the fence's own too. What was deleted is forgotten.
// The name of a table that needs quotes is given with them.
func TestTriggers(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		for range 2 {
			d.do(d.Table())
			d.do(d.Trigger("stock"))
		}
		d.do("UPDATE stock SET remaining = 90, fence = 20 WHERE id = 7")
		d.do("UPDATE stock SET remaining = 80, fence = 20 WHERE id = 7")
		_, err := d.Exec("UPDATE stock SET remaining = 70, fence = 19 WHERE id = 7")
		require.ErrorContains(t, err, "holdfast: stale token")
		none := map[string]string{"sqlite": "UPDATE OR REPLACE", "mariadb": "UPDATE IGNORE", "postgres": "UPDATE"}[d.name]
		_, err = d.Exec(none + " stock SET remaining = 70, fence = NULL WHERE id = 7")
		require.Error(t, err, "no token is none, although the database makes 0 of it")
		require.EqualValues(t, 80, d.remaining())
		d.do("UPDATE stock SET remaining = 60 WHERE id = 7")

		holders := late(t, 2, "stock:7")
		require.NoError(t, d.claims(holders[1]))
		_, err = d.Exec("UPDATE holdfast_fences SET fence = fence - 1")
		require.ErrorContains(t, err, "holdfast: stale token")
		_, err = d.Exec("INSERT INTO holdfast_fences VALUES ('x', -1)")
		require.Error(t, err)
		d.do("DELETE FROM holdfast_fences")
		require.NoError(t, d.sells(holders[0]))

		table := `"my order"`
		if d.name == "mariadb" {
			table = "`my order`"
		}
		d.do("DROP TABLE IF EXISTS " + table)
		d.do("CREATE TABLE " + table + " (id BIGINT PRIMARY KEY, fence BIGINT NOT NULL DEFAULT 0)")
		d.do(d.Trigger(table))
		d.do("INSERT INTO " + table + " VALUES (1, 20)")
		_, err = d.Exec("UPDATE " + table + " SET fence = 19")
		require.ErrorContains(t, err, "holdfast: stale token")
		d.do("DROP TABLE " + table)
	})
	require.Contains(t, fence.SQLite.Trigger("[order]"), "EXISTS [order_holdfast_fence] BEFORE UPDATE ON [order] ")
}
