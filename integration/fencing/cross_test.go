// SPDX-License-Identifier: Apache-2.0

package fencing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/fence"
)

// guard is how a transaction protects itself.
type guard func(ctx context.Context, tx *sql.Tx) error

// crossing is a transaction that is made line by line.
type crossing struct {
	d       *database
	ctx     context.Context // of the holder
	guard   guard
	level   sql.IsolationLevel
	abandon bool // it rolls back in place of its commit

	tx         *sql.Tx
	id         atomic.Int64 // of the connection
	read       int64
	told, made int // lines
	next       chan struct{}
	done       chan error
	err        error // the first one: it has rolled back
}

const lines = 5

func (c *crossing) line(n int) (err error) {
	switch n {
	case 0:
		c.tx, err = c.d.BeginTx(c.ctx, &sql.TxOptions{Isolation: c.level})
		if err == nil && c.d.name != "sqlite" {
			var id int64
			err = c.tx.QueryRow(map[string]string{"postgres": "SELECT pg_backend_pid()", "mariadb": "SELECT connection_id()"}[c.d.name]).Scan(&id)
			c.id.Store(id)
		}
		return err
	case 1:
		return c.guard(c.ctx, c.tx)
	case 2:
		return c.tx.QueryRow("SELECT remaining FROM stock WHERE id = 7").Scan(&c.read)
	case 3:
		return write(c.ctx, c.tx, c.read-1)
	}
	if c.abandon {
		return c.tx.Rollback()
	}
	return c.tx.Commit()
}

// run makes a line whenever it is told to. After an error it rolls back, and the rest are empty.
func (c *crossing) run() {
	failed := false
	for n := range lines {
		<-c.next
		var err error
		if !failed {
			err = c.line(n)
			failed = err != nil
			if failed && c.tx != nil {
				_ = c.tx.Rollback()
			}
		}
		c.done <- err
	}
}

func (c *crossing) start() {
	c.next, c.done, c.told, c.made, c.err = make(chan struct{}, lines), make(chan error, lines), 0, 0, nil
	go c.run()
}

// tell lets it make some more lines.
func (c *crossing) tell(n int) {
	for c.told += n; n > 0; n-- {
		c.next <- struct{}{}
	}
}

func never() bool { return false }

// settle returns when the lines that c was told to make are made, or wait for the other transaction.
func (c *crossing) settle(blocked func() bool) {
	c.d.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.After(soon); c.made < c.told; {
		select {
		case err := <-c.done:
			c.made++
			if c.err == nil {
				c.err = err
			}
		case <-tick.C:
			if blocked() {
				return
			}
		case <-end:
			c.d.t.Fatal("a line neither ends nor waits")
		}
	}
}

// blocked reports whether the server says that the transaction waits for a lock.
func (c *crossing) blocked() bool {
	switch c.d.name {
	case "postgres":
		return c.d.number(fmt.Sprintf("SELECT COUNT(*) FROM pg_stat_activity WHERE pid = %d AND wait_event_type = 'Lock'", c.id.Load())) == 1
	case "mariadb":
		return c.d.number("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'INNODB_ROW_LOCK_CURRENT_WAITS'") > 0
	}
	return false // SQLite does not wait here, it fails
}

// retryable reports whether the database says that nothing was written, and that the transaction may be
// repeated.
func retryable(err error) bool {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	var lite *sqlite.Error
	switch {
	case errors.As(err, &pg):
		return pg.Code == "40001" || pg.Code == "40P01" // serialization failure, dead lock
	case errors.As(err, &my):
		return my.Number == 1213 || my.Number == 1020 // dead lock, record has changed
	case errors.As(err, &lite):
		return lite.Code()&0xff == 5 // SQLITE_BUSY
	}
	return false
}

// cross makes two transactions in an order: whose line is next. When that one still waits with an earlier
// line, it goes on as soon as it can. Those that the database wants repeated are then repeated.
func (d *database) cross(order []int, both [2]*crossing) {
	d.t.Helper()
	both[0].start()
	both[1].start()
	for _, who := range order {
		both[who].tell(1)
		both[0].settle(both[0].blocked)
		both[1].settle(both[1].blocked)
	}
	both[0].settle(never)
	both[1].settle(never)
	for _, c := range both {
		if retryable(c.err) {
			c.start()
			c.tell(lines)
			c.settle(never)
		}
	}
}

// orders are all ways to cross two transactions.
func orders() (all [][]int) {
	var extend func(order []int, left [2]int)
	extend = func(order []int, left [2]int) {
		if left == [2]int{} {
			all = append(all, slices.Clone(order))
		}
		for who := range 2 {
			if left[who] > 0 {
				rest := left
				rest[who]--
				extend(append(order, who), rest)
			}
		}
	}
	extend(nil, [2]int{lines, lines})
	return all
}

// verdict is what is wrong after two transactions, the older first.
func (d *database) verdict(both [2]*crossing) error {
	old, present := both[0], both[1]
	if present.err != nil {
		return fmt.Errorf("the newest: %w", present.err)
	}
	committed := int64(0)
	for _, c := range both {
		if c.err == nil && !c.abandon {
			committed++
		}
	}
	switch {
	case old.err != nil && !errors.Is(old.err, fence.ErrStale):
		return old.err
	case old.err != nil && present.abandon:
		return fmt.Errorf("refused for a claim that was rolled back: %w", old.err)
	case d.remaining() != 1000-committed:
		return fmt.Errorf("%d committed, and %d remain: an update is lost", committed, d.remaining())
	case d.number("SELECT COUNT(*) FROM sold a, sold b WHERE a.remaining > b.remaining AND a.token > b.token") > 0:
		return errors.New("an older token behind a newer one")
	case committed == 2 && d.number("SELECT COUNT(*) FROM sold") != 2:
		return errors.New("a sale is lost")
	}
	return nil
}

// crossings crosses two holders at every line, at a level of isolation, and returns how many were refused
// and what was wrong. Half of them begin with a fence. In a third the older one rolls back, in a third the
// newer one.
func (d *database) crossings(level sql.IsolationLevel, with guard) (refused int, wrong []error) {
	d.t.Helper()
	holders := late(d.t, 3, "stock:7")
	first, old, present := holders[0], holders[1], holders[2]
	for i, order := range orders() {
		d.do("DELETE FROM holdfast_fences")
		d.do("DELETE FROM sold")
		d.do("UPDATE stock SET remaining = 1000")
		if i%2 == 0 {
			require.NoError(d.t, d.claims(first))
		}
		both := [2]*crossing{
			{d: d, ctx: old, guard: with, level: level, abandon: i%3 == 1},
			{d: d, ctx: present, guard: with, level: level, abandon: i%3 == 2},
		}
		d.cross(order, both)
		if err := d.verdict(both); err != nil {
			wrong = append(wrong, fmt.Errorf("crossing %d, %v: %w", i, order, err))
		}
		if errors.Is(both[0].err, fence.ErrStale) {
			refused++
		}
	}
	return refused, wrong
}

// Two holders whose transactions cross at every line lose no update, their sales come in the order of
// their tokens, and the newer one is never refused.
func TestTransactionsThatCross(t *testing.T) {
	test := func(t *testing.T, d *database, level sql.IsolationLevel) {
		refused, wrong := d.crossings(level, func(ctx context.Context, tx *sql.Tx) error { return d.Claim(ctx, tx) })
		require.Empty(t, wrong, level)
		require.Positive(t, refused)
		t.Logf("%s: %d crossings, the older one refused in %d", level, len(orders()), refused)
	}
	t.Run("sqlite", func(t *testing.T) { test(t, onSQLite(t, 0), sql.LevelDefault) })
	eachServer(t, func(t *testing.T, d *database) {
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			test(t, d, level)
		}
	})
}

// The check that looks and does not lock is found out.
func TestACheckWithoutALockIsFound(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		_, wrong := d.crossings(sql.LevelReadCommitted, func(ctx context.Context, tx *sql.Tx) error {
			seen, token := int64(0), client.Fence(ctx)
			err := tx.QueryRow("SELECT COALESCE(MAX(fence), 0) FROM holdfast_fences").Scan(&seen)
			if err == nil && seen > token {
				err = fence.ErrStale
			}
			return err
		})
		require.NotEmpty(t, wrong)
	})
}
