package fencing

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"
)

// write is a guarded write of the page: a statement, or a transaction of two.
type write struct {
	name     string
	postgres bool // only there
	do       func(q querier, token, n int64) (bool, error)
}

func statement(name string, args func(token, n int64) []any) write {
	return write{name: name, do: func(q querier, token, n int64) (bool, error) {
		return try(q, page[name], args(token, n)...)
	}}
}

// writes are all of them, on the row 7 and the lock 'a'.
var writes = []write{
	{claimRow, false, func(q querier, token, _ int64) (bool, error) {
		_, passed, err := claim(q, 7, token)
		return passed, err
	}},
	statement(updateRow, func(token, n int64) []any { return []any{7, token, n} }),
	statement(addToRow, func(token, n int64) []any { return []any{7, token, n} }),
	statement(upsertRow, func(token, n int64) []any { return []any{7, token, n} }),
	statement(claimFence, func(token, _ int64) []any { return []any{"a", token} }),
	{appendLedger, false, func(q querier, token, n int64) (bool, error) {
		if passed, err := try(q, page[claimFence], "a", token); err != nil || !passed {
			return false, err
		}
		return try(q, page[appendLedger], "a", token, n, n)
	}},
	{claimAndAppend, true, func(q querier, token, n int64) (bool, error) {
		return try(q, page[claimAndAppend], "a", token, n, n)
	}},
}

// eachWrite runs a test for each of them, on fresh tables with a row 7 that no token has seen.
func eachWrite(t *testing.T, open func(*testing.T) *database, test func(t *testing.T, d *database, w write)) {
	for _, w := range writes {
		t.Run(w.name, func(t *testing.T) {
			d := open(t)
			if w.postgres && !d.postgres {
				return // the page says so
			}
			require.True(t, d.passes(d, upsertRow, 7, 0, 100))
			test(t, d, w)
		})
	}
}

// does is a write where an error is a failure.
func (d *database) does(w write, q querier, token, n int64) bool {
	d.t.Helper()
	passed, err := w.do(q, token, n)
	require.NoError(d.t, err)
	return passed
}

// in runs a write in a transaction of its own.
func (d *database) in(w write, token, n int64) bool {
	d.t.Helper()
	tx := d.at(sql.LevelDefault)
	passed := d.does(w, tx, token, n)
	require.NoError(d.t, tx.Commit())
	return passed
}

// What an old holder writes after a newer one is refused and changes nothing; the same holder may
// write again.
func TestOlderTokensAreRefused(t *testing.T) {
	check := func(t *testing.T, d *database, w write) {
		// microseconds, as tokens are, and the largest that there is
		for _, newer := range []int64{20, 1795195256512539, 1<<53 - 1} {
			require.True(t, d.in(w, newer, 1))
			require.True(t, d.in(w, newer, 2), "an equal token")
			before := d.dump()
			for _, older := range []int64{newer - 1, 1} {
				require.False(t, d.in(w, older, 3))
				require.Equal(t, before, d.dump())
			}
		}
	}
	t.Run("sqlite", func(t *testing.T) { eachWrite(t, onSQLite, check) })
	t.Run("postgres", func(t *testing.T) { eachWrite(t, onPostgres, check) })
}

func TestTheRowIsWhatTheLastAcceptedHolderWrote(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		remaining := func() int64 { return d.number("SELECT remaining FROM stock WHERE id = 7") }
		require.True(t, d.passes(d, upsertRow, 7, 10, 100), "a new row")
		read, passed := d.claims(7, 20)
		require.True(t, passed)
		require.EqualValues(t, 100, read)
		require.False(t, d.passes(d, updateRow, 7, 10, 1), "an older holder, behind the claim")
		require.True(t, d.passes(d, updateRow, 7, 20, 99))
		require.True(t, d.passes(d, addToRow, 7, 20, -9))
		require.EqualValues(t, 90, remaining())
		require.False(t, d.passes(d, upsertRow, 7, 19, 1))
		require.True(t, d.passes(d, upsertRow, 7, 21, 80))
		require.EqualValues(t, 80, remaining())
		require.False(t, d.passes(d, updateRow, 8, 21, 1), "no such row")
		_, passed = d.claims(8, 21)
		require.False(t, passed, "no such row")
	})
}

// A step that is sent again adds nothing.
func TestARepeatedEntryIsOne(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		require.True(t, d.passes(d, appendLedger, "a", 10, 1, 5))
		require.False(t, d.passes(d, appendLedger, "a", 10, 1, 5))
		require.True(t, d.passes(d, appendLedger, "a", 10, 2, 5))
		entries := int64(2)
		if d.postgres {
			for range 2 {
				require.True(t, d.passes(d, claimAndAppend, "a", 10, 3, 5))
			}
			entries++
		}
		require.Equal(t, entries, d.number("SELECT COUNT(*) FROM ledger"))
	})
}
