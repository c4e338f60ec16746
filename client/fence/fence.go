// SPDX-License-Identifier: Apache-2.0

// Package fence refuses the late writes of old holders in SQL databases: the check of a lock's
// fencing token, in the transaction that it protects.
//
//	err := locks.Do(ctx, "stock:7", func(ctx context.Context) error {
//		tx, err := db.BeginTx(ctx, nil) // rolled back when the lock is lost
//		if err != nil {
//			return err
//		}
//		defer tx.Rollback()
//		if err := fence.PostgreSQL.Claim(ctx, tx); err != nil {
//			return err // ErrStale: a newer holder was here
//		}
//		... // read and write what the lock protects, in any table
//		return tx.Commit()
//	})
//
// The locks and their tokens are those that ctx carries. A lock that ended while its holder was
// paused is why this is needed: the holder goes on to write, and only the database can refuse it.
//
// The table holdfast_fences has the newest token of each lock, by the lock's key in Redis. Create it
// with [Dialect.Table]. A [Dialect.Trigger] guards a table against writers without this package.
// What must hold at each level of isolation is in docs/fencing.md of the repository. PostgreSQL refuses
// the keys of locks whose names are not UTF-8 or have a NUL (SQLSTATE 22021), with an error of its own.
// MySQL refuses keys that are longer than 1024 bytes.
package fence

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/internal/holding"
)

// ErrStale says that a newer holder has claimed: the lock was lost. It is client.ErrLost. Roll the
// transaction back, and stop.
var ErrStale = fmt.Errorf("%w: a newer holder has claimed", client.ErrLost)

// Claim raises the fences of the locks that ctx is under to their tokens. It returns ErrStale if one
// of them has been claimed with a higher token. The token of the same holder passes again.
//
// It is the first statement of the transaction. The locks' rows in holdfast_fences stay locked until
// the transaction ends, so no newer holder comes between, and an older one is refused from then on.
// Transactions of one lock therefore run one after the other: see Check for those that run side by
// side. A claim that is rolled back was none; so is one behind a savepoint that is rolled back.
//
// Given names of locks, it claims only those. It goes in the order of their keys, so two callers that
// claim the same locks never wait for each other in a circle.
//
// Errors: ErrStale; client.ErrArgument if ctx is under no lock, or not under one that is named; the
// cause of ctx, if it has ended (client.ErrNotHeld after the lock's Release); the database's own. After an
// error roll back.
func (d Dialect) Claim(ctx context.Context, tx *sql.Tx, names ...string) error {
	return guard(ctx, tx, "claim", d.claim, names, func(token int64) int64 { return token })
}

// Check is Claim for those who may be inside together: workers of one leader, or readers. It returns ErrStale
// if a fence is above the token, and does not raise it. Until the transaction ends nobody claims the locks,
// and others may check them. In SQLite that takes BEGIN IMMEDIATE: in WAL mode a transaction that only reads
// keeps no writer out, and its first write fails if one was there. Check guards only if every new holder has
// claimed before it relies on the data, in a transaction that is committed, as a leader does when its term
// begins. In PostgreSQL and MySQL it needs the primary, and no read-only transaction: it locks a row. Others
// wait for the one that makes the row: commit that one.
func (d Dialect) Check(ctx context.Context, tx *sql.Tx, names ...string) error {
	return guard(ctx, tx, "check", d.check, names, func(int64) int64 { return 0 })
}

func guard(ctx context.Context, tx *sql.Tx, op string, s statement, names []string, least func(int64) int64) error {
	locks, err := under(ctx, names)
	if err != nil {
		return fmt.Errorf("holdfast: %s: %w", op, err)
	}
	for _, lock := range locks {
		args, newest := []any{lock.Key, least(lock.Fence)}, int64(0)
		if s.write != "" {
			_, err = tx.ExecContext(ctx, s.write, args...)
			args = args[:1]
		}
		if err == nil {
			err = tx.QueryRowContext(ctx, s.read, args...).Scan(&newest)
		}
		switch cause := context.Cause(ctx); {
		case err != nil && errors.Is(cause, client.ErrReleased): // which is of no kind
			err = fmt.Errorf("%w: %v (%v)", client.ErrNotHeld, cause, err)
		case err != nil && cause != nil:
			err = fmt.Errorf("%w (%v)", cause, err)
		case errors.Is(err, sql.ErrNoRows): // MySQL may cut a key that is too long, and says nothing
			err = fmt.Errorf("%w: the key is too long for lock_key, or its row was deleted meanwhile (then try again)", client.ErrArgument)
		case err == nil && newest > lock.Fence:
			err = fmt.Errorf("%w: token %d, after %d", ErrStale, lock.Fence, newest)
		}
		if err != nil {
			return fmt.Errorf("holdfast: %s %q: %w", op, lock.Name, err)
		}
	}
	return nil
}

// under returns the holders of the locks that ctx is under, in the order of their keys: of those that
// are named, or of all. Of locks of one key it is the innermost.
func under(ctx context.Context, names []string) ([]*holding.Holder, error) {
	var all holding.Under
	ctx.Value(&all)
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the context is under no lock", client.ErrArgument)
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(h *holding.Holder) bool { return h.Name == name }) {
			return nil, fmt.Errorf("%w: the context is not under lock %q", client.ErrArgument, name)
		}
	}
	if len(names) > 0 {
		all = slices.DeleteFunc(all, func(h *holding.Holder) bool { return !slices.Contains(names, h.Name) })
	}
	slices.SortStableFunc(all, func(a, b *holding.Holder) int { return cmp.Compare(a.Key, b.Key) })
	return slices.CompactFunc(all, func(a, b *holding.Holder) bool { return a.Key == b.Key }), nil
}
