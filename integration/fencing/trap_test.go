package fencing

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page's rules, each beside what happens without it.

func TestACheckBeforeTheWriteIsNone(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		require.True(t, d.passes(d, upsertRow, 7, 10, 100))
		seen := d.number("SELECT fence FROM stock WHERE id = 7")
		require.LessOrEqual(t, seen, int64(10), "the old holder's check passes")
		require.True(t, d.passes(d, updateRow, 7, 20, 50), "and then there is a newer one")

		require.False(t, d.passes(d, updateRow, 7, 10, 99))
		_, err := d.Exec("UPDATE stock SET remaining = 99, fence = 10 WHERE id = 7")
		require.NoError(t, err)
		require.EqualValues(t, 99, d.number("SELECT remaining FROM stock WHERE id = 7"), "the newer holder's update is lost")
	})
}

func TestAReadBeforeTheClaimLosesAnUpdate(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		require.True(t, d.passes(d, upsertRow, 7, 10, 100))
		read := d.number("SELECT remaining FROM stock WHERE id = 7") // by the holder of 20
		require.True(t, d.passes(d, addToRow, 7, 10, -30), "the old holder's token is still good")
		require.True(t, d.passes(d, updateRow, 7, 20, read-1))
		require.EqualValues(t, 99, d.number("SELECT remaining FROM stock WHERE id = 7"), "30 are sold twice")

		read, passed := d.claims(7, 30)
		require.True(t, passed)
		require.False(t, d.passes(d, addToRow, 7, 20, -30), "behind the claim it is refused")
		require.True(t, d.passes(d, updateRow, 7, 30, read-1))
	})
}

func TestADeletedRowForgetsItsFence(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		require.True(t, d.passes(d, upsertRow, 7, 20, 100))
		tx := d.begin()
		require.True(t, d.passes(tx, claimFence, "stock:7", 20))
		_, err := tx.Exec("DELETE FROM stock WHERE id = 7")
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		require.False(t, d.passes(d, claimFence, "stock:7", 10), "a fence of its own does not")
		require.True(t, d.passes(d, upsertRow, 7, 10, 100), "the old holder brings the row back")
	})
}

func TestAConditionInTheLogDoesNotWait(t *testing.T) {
	d := onPostgres(t)
	const unclaimed = `INSERT INTO ledger (account, fence, step, amount) SELECT $1::TEXT, $2::BIGINT, 1, 1
		WHERE NOT EXISTS (SELECT FROM ledger WHERE account = $1 AND fence > $2)`
	newer := d.at(sql.LevelReadCommitted)
	require.True(t, d.tries(newer, unclaimed, "a", 20))
	require.True(t, d.tries(d, unclaimed, "a", 10), "it does not see the newer entry")
	require.NoError(t, newer.Commit())
	require.False(t, d.tries(d, unclaimed, "a", 11))
}
