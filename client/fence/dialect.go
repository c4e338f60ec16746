// SPDX-License-Identifier: Apache-2.0

package fence

import "strings"

// Dialect is the SQL of a kind of database: [PostgreSQL], [MySQL] or [SQLite].
type Dialect struct {
	table, trigger string
	claim, check   statement
}

// statement makes the fence of a key at least so high, locks its row, and returns the fence. It writes
// first, if it must, with both arguments, and then reads with the key alone.
type statement struct{ write, read string }

// Table returns the statement for a migration that creates the table of the fences.
func (d Dialect) Table() string { return d.table }

// Trigger returns the statements for a migration. The table then refuses every update that lowers its
// column fence (BIGINT NOT NULL DEFAULT 0), by any writer. The error says "holdfast: stale token". The
// table may be holdfast_fences too. Its name is not quoted: give one that needs quotes with them, as in
// the database's own statements: `"order"`, or "`order`" for MySQL.
func (d Dialect) Trigger(table string) string {
	name := table + "_holdfast_fence"
	if bare := strings.TrimRight(table, "\"`]"); bare != table { // the suffix is within the quotes
		name = bare + "_holdfast_fence" + table[len(bare):]
	}
	return strings.NewReplacer("guarded_fence", name, "guarded", table).Replace(d.trigger)
}

// table is also SQLite's.
const table = `CREATE TABLE IF NOT EXISTS holdfast_fences (
    lock_key TEXT   PRIMARY KEY,
    fence    BIGINT NOT NULL CHECK (fence >= 0)
)`

// PostgreSQL is that of PostgreSQL 14 and later.
var PostgreSQL = Dialect{
	table: table,
	trigger: `CREATE OR REPLACE FUNCTION guarded_fence() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'holdfast: stale token';
END $$;
CREATE OR REPLACE TRIGGER holdfast_fence BEFORE UPDATE ON guarded
FOR EACH ROW WHEN (COALESCE(NEW.fence, -1) < OLD.fence) EXECUTE FUNCTION guarded_fence()`,
	claim: statement{read: `INSERT INTO holdfast_fences AS f (lock_key, fence) VALUES ($1, $2)
ON CONFLICT (lock_key) DO UPDATE SET fence = GREATEST(f.fence, excluded.fence) RETURNING fence`},
	check: statement{
		write: `INSERT INTO holdfast_fences (lock_key, fence) VALUES ($1, $2) ON CONFLICT (lock_key) DO NOTHING`,
		read:  `SELECT fence FROM holdfast_fences WHERE lock_key = $1 FOR SHARE`,
	},
}

// MySQL is that of MySQL 8.0.29, MariaDB 10.3, and later. A statement that commits by itself (DDL, TRUNCATE,
// LOCK TABLES) ends the transaction and the guard: what follows is neither guarded nor rolled back.
var MySQL = Dialect{
	table: `CREATE TABLE IF NOT EXISTS holdfast_fences (
    lock_key VARBINARY(1024) PRIMARY KEY,
    fence    BIGINT NOT NULL CHECK (fence >= 0)
) ENGINE = InnoDB`,
	trigger: `CREATE TRIGGER IF NOT EXISTS guarded_fence BEFORE UPDATE ON guarded FOR EACH ROW
IF COALESCE(NEW.fence, -1) < OLD.fence THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'holdfast: stale token';
END IF`,
	claim: statement{
		write: `INSERT INTO holdfast_fences (lock_key, fence) VALUES (?, ?)
ON DUPLICATE KEY UPDATE fence = GREATEST(fence, VALUES(fence))`,
		read: `SELECT fence FROM holdfast_fences WHERE lock_key = ? FOR UPDATE`,
	},
	check: statement{
		write: `INSERT IGNORE INTO holdfast_fences (lock_key, fence) VALUES (?, ?)`,
		read:  `SELECT fence FROM holdfast_fences WHERE lock_key = ? LOCK IN SHARE MODE`,
	},
}

// SQLite is that of SQLite 3.35 and later. It has one writer at a time, so Check locks nothing.
var SQLite = Dialect{
	table: table,
	trigger: `CREATE TRIGGER IF NOT EXISTS guarded_fence BEFORE UPDATE ON guarded WHEN COALESCE(NEW.fence, -1) < OLD.fence
BEGIN
    SELECT RAISE(ABORT, 'holdfast: stale token');
END`,
	claim: statement{read: `INSERT INTO holdfast_fences (lock_key, fence) VALUES (?1, ?2)
ON CONFLICT (lock_key) DO UPDATE SET fence = max(fence, excluded.fence) RETURNING fence`},
	check: statement{read: `SELECT coalesce(max(fence), ?2) FROM holdfast_fences WHERE lock_key = ?1`},
}
