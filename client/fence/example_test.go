// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/fence"
)

var (
	locks *client.Client
	db    *sql.DB
)

func sell(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "UPDATE stock SET remaining = remaining - 1 WHERE id = 7")
	return err
}

// A holder that was paused beyond its lease is refused, and writes nothing. integration/fencing has it run
// on databases.
func ExampleDialect_Claim() {
	ctx := context.Background()
	err := locks.Do(ctx, "stock:7", func(ctx context.Context) error {
		tx, err := db.BeginTx(ctx, nil) // rolled back when the lock is lost
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := fence.PostgreSQL.Claim(ctx, tx); err != nil {
			return err // fence.ErrStale: a newer holder was here
		}
		if err := sell(ctx, tx); err != nil { // reads and writes what the lock protects, in any table
			return err
		}
		return tx.Commit()
	})
	if err != nil {
		log.Print(err)
	}
}

// A leader claims once, when its term begins. Its workers check, side by side.
func ExampleDialect_Check() {
	transact := func(ctx context.Context, do func(tx *sql.Tx) error) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := do(tx); err != nil {
			return err
		}
		return tx.Commit()
	}
	worker := func(ctx context.Context) error {
		return transact(ctx, func(tx *sql.Tx) error {
			if err := fence.MySQL.Check(ctx, tx); err != nil {
				return err
			}
			return sell(ctx, tx)
		})
	}
	err := locks.Lead(context.Background(), "scheduler", func(ctx context.Context) error {
		if err := transact(ctx, func(tx *sql.Tx) error { return fence.MySQL.Claim(ctx, tx) }); err != nil {
			log.Print(err) // Lead would return it, and then nobody campaigns here any more
			return client.ErrResign
		}
		return worker(ctx) // or many of them
	})
	if err != nil {
		log.Print(err)
	}
}

// What a migration of the application runs, once.
func ExampleDialect_Trigger() {
	fmt.Println(fence.SQLite.Table() + ";")
	fmt.Println(fence.SQLite.Trigger("stock") + ";")
	// Output:
	// CREATE TABLE IF NOT EXISTS holdfast_fences (
	//     lock_key TEXT   PRIMARY KEY,
	//     fence    BIGINT NOT NULL CHECK (fence >= 0)
	// );
	// CREATE TRIGGER IF NOT EXISTS stock_holdfast_fence BEFORE UPDATE ON stock WHEN COALESCE(NEW.fence, -1) < OLD.fence
	// BEGIN
	//     SELECT RAISE(ABORT, 'holdfast: stale token');
	// END;
}
