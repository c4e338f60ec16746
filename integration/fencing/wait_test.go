// SPDX-License-Identifier: Apache-2.0

package fencing

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/fence"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// A holder that is paused within a transaction loses it, and then the newer one goes on.
func TestAPausedTransactionIsRolledBack(t *testing.T) {
	limit := map[string]string{
		"postgres": "SET idle_in_transaction_session_timeout = '2s'",
		"mariadb":  "SET idle_write_transaction_timeout = 2", // seconds
	}
	eachServer(t, func(t *testing.T, d *database) {
		holders := late(t, 2, "stock:7")
		conn, err := d.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.ExecContext(t.Context(), limit[d.name])
		require.NoError(t, err)
		old, err := conn.BeginTx(holders[0], nil)
		require.NoError(t, err)
		require.NoError(t, d.Claim(holders[0], old))
		require.NoError(t, sell(holders[0], old))
		require.NoError(t, d.sells(holders[1])) // waits for the end of the old one
		require.Error(t, old.Commit())
		require.EqualValues(t, 999, d.remaining())
	})
}

// Whoever waits for a paused holder stops when its context ends.
func TestTheWaitEndsWithTheContext(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		holders := late(t, 2, "stock:7")
		old := d.begin(holders[0], sql.LevelDefault)
		require.NoError(t, d.Claim(holders[0], old))
		ctx, cancel := context.WithCancel(holders[1])
		waits := &crossing{d: d, ctx: ctx, guard: func(ctx context.Context, tx *sql.Tx) error { return d.Claim(ctx, tx) }}
		waits.start()
		waits.tell(1)
		waits.settle(never)
		waits.tell(1)
		require.Eventually(t, waits.blocked, soon, time.Millisecond)
		cancel()
		waits.settle(never)
		require.ErrorIs(t, waits.err, context.Canceled)
		require.NoError(t, old.Commit())
		require.NoError(t, d.sells(holders[1]))
	})
}

// Workers of one leader check side by side, and the next leader's claim waits for all of them.
func TestChecksGoTogether(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		leaders := late(t, 2, "leader")
		require.NoError(t, d.claims(leaders[0]))
		first, second := d.begin(leaders[0], sql.LevelDefault), d.begin(leaders[0], sql.LevelDefault)
		require.NoError(t, d.Check(leaders[0], first))
		require.NoError(t, d.Check(leaders[0], second))
		next := &crossing{d: d, ctx: leaders[1], guard: func(ctx context.Context, tx *sql.Tx) error { return d.Claim(ctx, tx) }}
		next.start()
		next.tell(2)
		for _, worker := range []*sql.Tx{first, second} {
			require.Eventually(t, next.blocked, soon, time.Millisecond)
			require.NoError(t, worker.Commit())
		}
		next.tell(lines - 2)
		next.settle(never)
		require.NoError(t, next.err)
		require.Error(t, d.checks(leaders[0]))
	})
}

// Several locks are claimed in the order of their keys, whichever is the innermost. The one that waits
// for the first one has none of the others, so nobody waits in a circle.
func TestLocksAreClaimedInOneOrder(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		c := locktest.New(t).Client(client.Config{})
		require.NoError(t, c.Do(t.Context(), "a", func(ctx context.Context) error {
			return c.Do(ctx, "b", func(ctx context.Context) error {
				first := d.begin(ctx, sql.LevelDefault)
				require.NoError(t, d.Claim(ctx, first, "a"))
				both := &crossing{d: d, ctx: ctx, guard: func(ctx context.Context, tx *sql.Tx) error { return d.Claim(ctx, tx) }}
				both.start()
				both.tell(lines)
				require.Eventually(t, both.blocked, soon, time.Millisecond)
				free, cancel := context.WithTimeout(ctx, soon)
				defer cancel()
				require.NoError(t, d.claims(free, "b"))
				require.NoError(t, first.Commit())
				both.settle(never)
				return both.err
			})
		}))
	})
}

// A transaction that has read already sees a newer holder all the same, at every level.
func TestAReadDoesNotHideANewerHolder(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			for _, use := range []func(context.Context, *sql.Tx, ...string) error{d.Claim, d.Check} {
				holders := late(t, 2, "stock:7")
				require.NoError(t, d.claims(holders[0]))
				tx := d.begin(holders[0], level)
				var remaining int64
				require.NoError(t, tx.QueryRow("SELECT remaining FROM stock WHERE id = 7").Scan(&remaining))
				require.NoError(t, d.claims(holders[1]))
				err := use(holders[0], tx)
				require.True(t, errors.Is(err, fence.ErrStale) || retryable(err), "%s: %v", level, err)
				require.NoError(t, tx.Rollback())
			}
		}
	})
}

// What the page says of reads before the claim: PostgreSQL refuses a claim behind a read that is not true
// any more, and MySQL lets it pass, and shows the old state.
func TestReadsBeforeTheClaim(t *testing.T) {
	const read = "SELECT remaining FROM stock WHERE id = 7"
	eachServer(t, func(t *testing.T, d *database) {
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead} {
			d.do("DELETE FROM holdfast_fences")
			holders := late(t, 2, "stock:7")
			tx := d.begin(holders[1], level)
			var before, behind int64
			require.NoError(t, tx.QueryRow(read).Scan(&before))
			require.NoError(t, d.sells(holders[0]))
			err := d.Claim(holders[1], tx)
			if d.name == "postgres" && level == sql.LevelRepeatableRead {
				require.True(t, retryable(err), "%v", err)
			} else {
				require.NoError(t, err)
				require.NoError(t, tx.QueryRow(read).Scan(&behind))
				require.Equal(t, level == sql.LevelRepeatableRead, before == behind, level)
			}
			require.NoError(t, tx.Rollback())
		}
	})
}
