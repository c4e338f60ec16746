package fencing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"
)

const soon = 30 * time.Second

var (
	ctx       = context.Background()
	pg        *postgres
	pgProblem error // why there is none
	tables    = []string{"stock", "fences", "ledger"}
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	if pg, pgProblem = startPostgres(); pgProblem == nil {
		defer func() {
			if err := pg.stop(); err != nil {
				fmt.Fprintln(os.Stderr, "stopping PostgreSQL:", err)
				code = max(code, 1)
			}
		}()
	}
	return m.Run()
}

// database has the tables of the page, empty.
type database struct {
	*sql.DB
	t        *testing.T
	postgres bool
}

// each runs a test on both databases.
func each(t *testing.T, test func(t *testing.T, d *database)) {
	t.Run("sqlite", func(t *testing.T) { test(t, onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, onPostgres(t)) })
}

// onSQLite opens a file that writers wait for, in transactions that begin with BEGIN IMMEDIATE.
func onSQLite(t *testing.T) *database {
	t.Helper()
	return open(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "fencing.db")+
		"?_txlock=immediate&_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)")
}

func onPostgres(t *testing.T) *database {
	t.Helper()
	if errors.Is(pgProblem, errNotInstalled) {
		t.Skip("skipped: ", pgProblem)
	}
	require.NoError(t, pgProblem)
	return open(t, "pgx", pg.dsn)
}

func open(t *testing.T, driver, dsn string) *database {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	d := &database{db, t, driver == "pgx"}
	for _, table := range tables {
		_, err := db.Exec("DROP TABLE IF EXISTS " + table)
		require.NoError(t, err)
	}
	for _, name := range []string{createStock, createFences, createLedger} {
		_, err := db.Exec(page[name])
		require.NoError(t, err, name)
	}
	return d
}

// querier is a database, a connection or a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// try runs a statement and says whether it passed the fence.
func try(q querier, statement string, args ...any) (bool, error) {
	result, err := q.ExecContext(ctx, statement, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// passes is try with a statement of the page, where an error is a failure.
func (d *database) passes(q querier, name string, args ...any) bool {
	d.t.Helper()
	passed, err := try(q, page[name], args...)
	require.NoError(d.t, err, name)
	return passed
}

// claim claims a row, and returns what it reads.
func claim(q querier, id, token int64) (remaining int64, passed bool, err error) {
	err = q.QueryRowContext(ctx, page[claimRow], id, token).Scan(&remaining)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return remaining, err == nil, err
}

func (d *database) claims(id, token int64) (remaining int64, passed bool) {
	d.t.Helper()
	remaining, passed, err := claim(d, id, token)
	require.NoError(d.t, err)
	return remaining, passed
}

func (d *database) number(query string, args ...any) (n int64) {
	d.t.Helper()
	require.NoError(d.t, d.QueryRow(query, args...).Scan(&n))
	return n
}

// at begins a transaction of an isolation level.
func (d *database) at(level sql.IsolationLevel) *sql.Tx {
	d.t.Helper()
	tx, err := d.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	require.NoError(d.t, err)
	d.t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// dump is all that the tables hold.
func (d *database) dump() string {
	d.t.Helper()
	var text strings.Builder
	for _, table := range tables {
		rows, err := d.Query("SELECT * FROM " + table + " ORDER BY 1, 2")
		require.NoError(d.t, err)
		columns, err := rows.Columns()
		require.NoError(d.t, err)
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		for rows.Next() {
			require.NoError(d.t, rows.Scan(values...))
			fmt.Fprint(&text, table)
			for _, v := range values {
				fmt.Fprint(&text, " ", *v.(*any))
			}
			fmt.Fprintln(&text)
		}
		require.NoError(d.t, rows.Err())
		require.NoError(d.t, rows.Close())
	}
	return text.String()
}
