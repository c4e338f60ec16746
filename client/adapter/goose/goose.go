// SPDX-License-Identifier: Apache-2.0

// Package holdfastgoose lets one process of a fleet migrate a database with pressly/goose v3, under a
// lock of Holdfast. It is for databases that goose has no lock for, and for migrations whose lock must
// not be in the database that they change.
//
//	import holdfastgoose "github.com/holdfast-go/holdfast/client/adapter/goose"
//
//	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations,
//		goose.WithLocker(holdfastgoose.NewLocker(c, "migrate:shop"))) // c is a *client.Client
//	...
//	_, err = p.Up(ctx)
//
// Every process does this when it starts. One of them migrates, and the others wait in line for it;
// then they find nothing to do.
//
// # When Redis cannot be reached
//
// Nothing is migrated: Up returns an error that is client.ErrUnreachable. A process that waits in line
// rides out an outage of up to one lease. If Redis is gone when the migrations have been made under the
// lock, that is only logged (slog): the lease ends the lock.
//
// # When the lock is lost during a migration
//
// The lock is renewed while the migrations run, however long that takes, and also if one of them goes on
// when the context of Up has ended. It can be lost all the same: in an outage that is longer than the
// lease, by a failover, or by an operator who breaks it. Then another process may migrate beside this one.
// goose has no way to hear of that; it goes on, and what it returns in the end is client.ErrLost, although
// its migrations were made. To have them stopped instead, call goose under the lock:
//
//	err := c.Do(ctx, "migrate:shop", func(ctx context.Context) error { // ends when the lock is lost
//		_, err := p.Up(ctx)
//		return err
//	})
//
// A provider with a Locker of the same name and client can be called in this way too: it re-enters the
// lock. Only so is the context of a Go migration under the lock, and package fence can claim it. A migration
// in a transaction is rolled back when its context ends (in MySQL and MariaDB not its DDL: it stays half
// made, and Up fails until it is mended by hand); one without is left as it is. That Redis holds the lock,
// and not the database, also means that no database refuses a late writer: give no migration a way to be
// harmful when it runs twice.
//
// # When the process dies
//
// The lock ends with its lease, and another process migrates. What the dead one had begun is rolled back if
// it is in a transaction (in MySQL and MariaDB not its DDL). A statement without one goes on in the database,
// beside the same one of the other process. In PostgreSQL client_connection_check_interval ends it.
package holdfastgoose

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/pressly/goose/v3/lock"

	"github.com/holdfast-go/holdfast/client"
)

// Locker is a [lock.Locker]. It is safe for concurrent use; several providers may share one. If those of
// one *sql.DB do, and a lock is lost, it may be the wrong one of them that returns client.ErrLost.
type Locker struct {
	client *client.Client
	name   string
	opts   []client.Option

	mu   sync.Mutex
	held map[*sql.DB][]*client.Lock // the oldest first: more than one if one was lost, or re-entered
}

var _ lock.Locker = (*Locker)(nil)

// NewLocker returns a Locker whose lock has that name: one for each database, the same in all
// processes. opts change the lock, for example client.WithMaxWait for how long to wait for another
// process that migrates; without it that is until the context of the call ends.
func NewLocker(c *client.Client, name string, opts ...client.Option) *Locker {
	return &Locker{client: c, name: name, opts: opts, held: map[*sql.DB][]*client.Lock{}}
}

// Lock waits in line for the lock. The database is not asked, and may be nil.
//
// Errors: as client.Acquire.
func (l *Locker) Lock(ctx context.Context, db *sql.DB) error {
	// A migration may not heed the end of ctx, and goose waits for it: the lock is kept until Unlock.
	opts := append([]client.Option{client.WithMaxWait(0), client.WithLockContext(context.WithoutCancel(ctx))}, l.opts...)
	got, err := l.client.Acquire(ctx, l.name, opts...)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[db] = append(l.held[db], got)
	return nil
}

// Unlock gives the lock back. It blocks for one round trip, and while Redis cannot be reached until
// ctx ends or the lease has ended.
//
// Errors: client.ErrLost when the lock was lost since Lock, and client.ErrClosed when the client was closed:
// what was done may have run beside another process. client.ErrNotHeld without a Lock. A release that the
// server did not answer is only logged: what was done was done under the lock, and the lease ends it.
func (l *Locker) Unlock(ctx context.Context, db *sql.DB) error {
	l.mu.Lock()
	held := l.held[db]
	if len(held) == 0 {
		l.mu.Unlock()
		return fmt.Errorf("holdfast: goose: unlock %s: %w", l.name, client.ErrNotHeld)
	}
	// The oldest: if it is another caller's, it is one that was lost, and what is still held is held
	// until that other one has called too.
	got := held[0]
	if l.held[db] = held[1:]; len(held) == 1 {
		delete(l.held, db)
	}
	l.mu.Unlock()
	err := got.Release(ctx)
	var lost *client.LostError // also of a client that was closed
	if err != nil && !errors.As(err, &lost) {
		slog.Warn("holdfast: release not confirmed; the migrations were made under the lock", "name", l.name, "error", err)
		return nil
	}
	return err
}
