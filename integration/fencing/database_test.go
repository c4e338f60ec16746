// SPDX-License-Identifier: Apache-2.0

package fencing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/fence"
	"github.com/holdfast-go/holdfast/client/locktest"
)

const soon = 30 * time.Second

var servers = map[string]*databaseServer{}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	_ = mysql.SetLogger(&mysql.NopLogger{}) // it logs connections that servers end
	for _, p := range programs {
		servers[p.name] = p.start()
	}
	defer func() {
		for name, s := range servers {
			if err := s.stop(); err != nil {
				fmt.Fprintln(os.Stderr, "stopping", name+":", err)
				code = max(code, 1)
			}
		}
	}()
	return m.Run()
}

// database has empty tables: the fences, with their trigger, the row 7 of stock that the lock stock:7
// protects, and what was sold of it.
type database struct {
	*sql.DB
	fence.Dialect
	t    *testing.T
	name string
}

// each runs a test on all databases.
func each(t *testing.T, test func(t *testing.T, d *database)) {
	t.Run("sqlite", func(t *testing.T) { test(t, onSQLite(t, soon)) })
	eachServer(t, test)
}

// eachServer runs a test on the databases whose transactions run side by side.
func eachServer(t *testing.T, test func(t *testing.T, d *database)) {
	t.Run("postgres", func(t *testing.T) { test(t, onServer(t, "postgres", fence.PostgreSQL)) })
	t.Run("mariadb", func(t *testing.T) { test(t, onServer(t, "mariadb", fence.MySQL)) })
}

// onSQLite opens a file that writers wait for, so long.
func onSQLite(t *testing.T, wait time.Duration) *database {
	return open(t, "sqlite", "sqlite", fence.SQLite, "file:"+filepath.Join(t.TempDir(), "fencing.db")+
		fmt.Sprintf("?_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)", wait.Milliseconds()))
}

func onServer(t *testing.T, name string, dialect fence.Dialect) *database {
	s := servers[name]
	if errors.Is(s.problem, errNotInstalled) {
		t.Skip("skipped: ", name, ": ", s.problem)
	}
	require.NoError(t, s.problem)
	return open(t, name, s.driver, dialect, s.dsn)
}

func open(t *testing.T, name, driver string, dialect fence.Dialect, dsn string) *database {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxIdleConns(8) // a connection costs PostgreSQL a process
	d := &database{DB: db, Dialect: dialect, t: t, name: name}
	for _, table := range []string{"holdfast_fences", "stock", "sold"} {
		d.do("DROP TABLE IF EXISTS " + table)
	}
	d.do(d.Table())
	d.do(d.Trigger("holdfast_fences"))
	d.do("CREATE TABLE stock (id BIGINT PRIMARY KEY, remaining BIGINT NOT NULL, fence BIGINT NOT NULL DEFAULT 0)")
	d.do("CREATE TABLE sold (remaining BIGINT NOT NULL, token BIGINT NOT NULL)")
	d.do("INSERT INTO stock (id, remaining) VALUES (7, 1000)")
	return d
}

func (d *database) do(query string) {
	d.t.Helper()
	_, err := d.Exec(query)
	require.NoError(d.t, err, query)
}

func (d *database) number(query string) (n int64) {
	d.t.Helper()
	require.NoError(d.t, d.QueryRow(query).Scan(&n), query)
	return n
}

func (d *database) remaining() int64 { return d.number("SELECT remaining FROM stock WHERE id = 7") }

func (d *database) fence() int64 {
	return d.number("SELECT COALESCE(MAX(fence), -1) FROM holdfast_fences")
}

// begin begins a transaction under a lock's context, which ends with the test if not before.
func (d *database) begin(ctx context.Context, level sql.IsolationLevel) *sql.Tx {
	d.t.Helper()
	tx, err := d.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	require.NoError(d.t, err)
	d.t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// in runs what is to be done in a transaction, and commits it unless that failed.
func (d *database) in(ctx context.Context, do func(tx *sql.Tx) error) error {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// claims claims in a transaction of its own.
func (d *database) claims(ctx context.Context, names ...string) error {
	return d.in(ctx, func(tx *sql.Tx) error { return d.Claim(ctx, tx, names...) })
}

func (d *database) checks(ctx context.Context, names ...string) error {
	return d.in(ctx, func(tx *sql.Tx) error { return d.Check(ctx, tx, names...) })
}

// sell reads, and writes what follows from it.
func sell(ctx context.Context, tx *sql.Tx) error {
	var remaining int64
	if err := tx.QueryRowContext(ctx, "SELECT remaining FROM stock WHERE id = 7").Scan(&remaining); err != nil {
		return err
	}
	return write(ctx, tx, remaining-1)
}

func write(ctx context.Context, tx *sql.Tx, remaining int64) error {
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE stock SET remaining = %d WHERE id = 7", remaining)); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO sold VALUES (%d, %d)", remaining, client.Fence(ctx)))
	return err
}

func (d *database) sells(ctx context.Context) error {
	return d.in(ctx, func(tx *sql.Tx) error {
		if err := d.Claim(ctx, tx); err != nil {
			return err
		}
		return sell(ctx, tx)
	})
}

// late returns contexts of holders who never learn that their locks ended, the oldest first: each has
// all of the locks.
func late(t *testing.T, n int, names ...string) (holders []context.Context) {
	t.Helper()
	c := locktest.New(t).Client(client.Config{})
	for range n {
		locks, err := c.AcquireAll(t.Context(), names)
		require.NoError(t, err)
		holders = append(holders, context.WithoutCancel(locks.Context()))
		require.NoError(t, locks.Release(t.Context()))
	}
	return holders
}
