package fencing

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"
)

// outcome is what a write that ran in the background came to.
type outcome struct {
	passed bool
	err    error
}

// waiting starts a write in a transaction, and returns when the server says that it waits for a
// lock.
func (d *database) waiting(tx *sql.Tx, w write, token, n int64) <-chan outcome {
	d.t.Helper()
	var pid int
	require.NoError(d.t, tx.QueryRow("SELECT pg_backend_pid()").Scan(&pid))
	done := make(chan outcome, 1)
	go func() {
		passed, err := w.do(tx, token, n)
		if err == nil {
			err = tx.Commit()
		}
		done <- outcome{passed, err}
	}()
	require.Eventually(d.t, func() bool {
		return d.number("SELECT COUNT(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'", pid) == 1
	}, soon, 5*time.Millisecond)
	return done
}

// code is the SQLSTATE of an error.
func code(err error) string {
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}

// An older write that finds the row locked waits, and its check is made again, on what the newer
// holder left.
func TestReadCommittedIsEnough(t *testing.T) {
	eachWrite(t, onPostgres, func(t *testing.T, d *database, w write) {
		newer := d.at(sql.LevelReadCommitted)
		require.True(t, d.does(w, newer, 20, 1)) // the fence of 'a' does not exist yet
		older := d.waiting(d.at(sql.LevelReadCommitted), w, 10, 2)
		require.NoError(t, newer.Commit())
		before := d.dump()
		require.Equal(t, outcome{false, nil}, <-older)
		require.Equal(t, before, d.dump())

		newer = d.at(sql.LevelReadCommitted)
		require.True(t, d.does(w, newer, 40, 3))
		older = d.waiting(d.at(sql.LevelReadCommitted), w, 30, 4)
		require.NoError(t, newer.Rollback())
		require.Equal(t, outcome{true, nil}, <-older, "the newer one did not write")
	})
}

func TestHigherLevelsFailAndTheRepeatIsRefused(t *testing.T) {
	for _, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
		t.Run(level.String(), func(t *testing.T) {
			eachWrite(t, onPostgres, func(t *testing.T, d *database, w write) {
				newer := d.at(level)
				require.True(t, d.does(w, newer, 20, 1))
				older := d.waiting(d.at(level), w, 10, 2)
				require.NoError(t, newer.Commit())
				before := d.dump()
				require.Equal(t, "40001", code((<-older).err))
				repeat := d.at(level)
				require.False(t, d.does(w, repeat, 10, 2))
				require.NoError(t, repeat.Commit())
				require.Equal(t, before, d.dump())
			})
		})
	}
}

func TestLockTimeoutEndsTheWait(t *testing.T) {
	eachWrite(t, onPostgres, func(t *testing.T, d *database, w write) {
		old := d.at(sql.LevelDefault) // paused with the row locked
		d.does(w, old, 10, 1)
		newer := d.at(sql.LevelDefault)
		_, err := newer.Exec("SET LOCAL lock_timeout = '20ms'")
		require.NoError(t, err)
		_, err = w.do(newer, 20, 2)
		require.Equal(t, "55P03", code(err))
	})
}

// A holder that is paused within a transaction loses it, and then the newer one goes on.
func TestAPausedTransactionIsRolledBack(t *testing.T) {
	eachWrite(t, onPostgres, func(t *testing.T, d *database, w write) {
		before := d.dump()
		old := d.at(sql.LevelDefault)
		_, err := old.Exec("SET LOCAL idle_in_transaction_session_timeout = '50ms'")
		require.NoError(t, err)
		d.does(w, old, 10, 1)
		newer := d.at(sql.LevelDefault)
		require.True(t, d.does(w, newer, 20, 2)) // waits for the end of the old one
		require.NoError(t, newer.Rollback())
		require.Equal(t, before, d.dump())
		require.Error(t, old.Commit())
	})
}

const busy = 5 // SQLITE_BUSY, the lower byte of a code

func isBusy(err error) bool {
	var problem *sqlite.Error
	return errors.As(err, &problem) && problem.Code()&0xff == busy
}

// conn returns a connection to SQLite that waits for nobody, or does.
func (d *database) conn(timeout string) *sql.Conn {
	d.t.Helper()
	c, err := d.Conn(ctx)
	require.NoError(d.t, err)
	d.t.Cleanup(func() { _ = c.Close() })
	d.do(c, "PRAGMA busy_timeout = "+timeout)
	return c
}

func (d *database) do(q querier, query string) {
	d.t.Helper()
	_, err := q.ExecContext(ctx, query)
	require.NoError(d.t, err, query)
}

func TestSQLiteHasOneWriter(t *testing.T) {
	eachWrite(t, onSQLite, func(t *testing.T, d *database, w write) {
		newer, older := d.conn("0"), d.conn("0")
		d.do(newer, "BEGIN IMMEDIATE")
		require.True(t, d.does(w, newer, 20, 1))
		_, err := w.do(older, 10, 2)
		require.True(t, isBusy(err), "%v", err)
		d.do(newer, "COMMIT")
		before := d.dump()
		require.False(t, d.does(w, older, 10, 2))
		require.Equal(t, before, d.dump())
	})
}

// A transaction that begins with a read fails at once when it wants to write, whatever its timeout.
func TestSQLiteTransactionsThatBeginWithARead(t *testing.T) {
	eachWrite(t, onSQLite, func(t *testing.T, d *database, w write) {
		other, reader := d.conn("0"), d.conn("600000")
		d.do(reader, "BEGIN")
		var n int
		require.NoError(t, reader.QueryRowContext(ctx, "SELECT COUNT(*) FROM stock").Scan(&n))
		require.True(t, d.does(w, other, 10, 1))
		_, err := w.do(reader, 20, 2)
		require.True(t, isBusy(err), "%v", err)
		d.do(reader, "ROLLBACK")
	})
}
