// SPDX-License-Identifier: Apache-2.0

package holdfastgoose_test

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/pressly/goose/v3/database"
)

// versions is a database with the version table that goose keeps, and no other one: a real database
// takes minutes to compile. Its connections and transactions are those of connection.
type versions struct {
	mu      sync.Mutex
	applied []int64 // empty: no table
}

func (v *versions) open(t testing.TB) *sql.DB {
	db := sql.OpenDB(connector{})
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (v *versions) latest() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Max(append(v.applied, 0))
}

func (v *versions) Tablename() string { return "versions" }

func (v *versions) CreateVersionTable(context.Context, database.DBTxConn) error { return nil }

func (v *versions) Insert(_ context.Context, _ database.DBTxConn, r database.InsertRequest) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if slices.Contains(v.applied, r.Version) {
		return fmt.Errorf("version %d is there already", r.Version)
	}
	v.applied = append(v.applied, r.Version)
	return nil
}

func (v *versions) Delete(_ context.Context, _ database.DBTxConn, version int64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.applied = slices.DeleteFunc(v.applied, func(a int64) bool { return a == version })
	return nil
}

func (v *versions) GetMigration(_ context.Context, _ database.DBTxConn, version int64) (*database.GetMigrationResult, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !slices.Contains(v.applied, version) {
		return nil, database.ErrVersionNotFound
	}
	return &database.GetMigrationResult{IsApplied: true}, nil
}

func (v *versions) GetLatestVersion(context.Context, database.DBTxConn) (int64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.applied) == 0 {
		return 0, database.ErrVersionNotFound
	}
	return slices.Max(v.applied), nil
}

func (v *versions) ListMigrations(context.Context, database.DBTxConn) ([]*database.ListMigrationsResult, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := []*database.ListMigrationsResult{}
	for _, a := range slices.SortedFunc(slices.Values(v.applied), func(a, b int64) int { return cmp.Compare(b, a) }) {
		list = append(list, &database.ListMigrationsResult{Version: a, IsApplied: true})
	}
	return list, nil
}

// connector makes connections of a database that stores nothing.
type connector struct{}

func (connector) Connect(context.Context) (driver.Conn, error) { return connection{}, nil }
func (c connector) Driver() driver.Driver                      { return c }
func (connector) Open(string) (driver.Conn, error)             { return connection{}, nil }

type connection struct{}

func (connection) Prepare(query string) (driver.Stmt, error) {
	return nil, fmt.Errorf("asked for %q", query)
}
func (connection) Begin() (driver.Tx, error) { return connection{}, nil }
func (connection) Commit() error             { return nil }
func (connection) Rollback() error           { return nil }
func (connection) Close() error              { return nil }
