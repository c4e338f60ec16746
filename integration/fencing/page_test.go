// SPDX-License-Identifier: Apache-2.0

package fencing

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/fence"
)

// page holds the statements of docs/fencing.md, by their first lines.
var page = mustRead("../../docs/fencing.md")

func mustRead(path string) map[string]string {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	statements := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)```sql\n-- ([^\n]*)\n(.*?)\n```").FindAllStringSubmatch(string(text), -1) {
		if statements[m[1]] != "" {
			panic(fmt.Sprintf("two statements are called %q", m[1]))
		}
		statements[m[1]] = m[2]
	}
	return statements
}

// The page prints what the package prints.
func TestThePagePrintsThePackage(t *testing.T) {
	require.Len(t, page, 7)
	table := page["PostgreSQL, SQLite; in MySQL lock_key is VARBINARY(1024)"]
	require.Equal(t, table, fence.PostgreSQL.Table())
	require.Equal(t, table, fence.SQLite.Table())
	mysql := strings.Replace(table, "TEXT  ", "VARBINARY(1024)", 1)
	require.Equal(t, strings.Fields(mysql+" ENGINE = InnoDB"), strings.Fields(fence.MySQL.Table()))
	require.Equal(t, page["PostgreSQL"], fence.PostgreSQL.Trigger("stock"))
	require.Equal(t, page["MySQL, MariaDB"], fence.MySQL.Trigger("stock"))
	require.Equal(t, page["SQLite"], fence.SQLite.Trigger("stock"))
}

// The statements of the page go together with the package.
func TestTheStatementsOfThePage(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		changes := func(statement string, args ...any) int64 {
			result, err := d.Exec(statement, args...)
			require.NoError(t, err)
			n, err := result.RowsAffected()
			require.NoError(t, err)
			return n
		}
		holders := late(t, 3, "stock:7")
		newest := client.Fence(holders[1])
		passes := func(token int64) bool {
			if d.name != "mariadb" {
				return changes(page["claim (PostgreSQL, SQLite)"], "lock:stock:7", token) == 1
			}
			claim, read, _ := strings.Cut(page["claim (MySQL, MariaDB)"], ";")
			changes(claim, "lock:stock:7", token)
			var seen int64
			require.NoError(t, d.QueryRow(read, "lock:stock:7").Scan(&seen))
			return seen <= token
		}
		require.NoError(t, d.claims(holders[0]))
		require.True(t, passes(newest))
		require.True(t, passes(newest), "an equal token")
		require.False(t, passes(newest-1))
		require.Error(t, d.claims(holders[0]))
		require.Equal(t, newest, d.fence())
		require.NoError(t, d.claims(holders[2]))
		require.False(t, passes(newest))

		if d.name == "mariadb" {
			return // the placeholders differ
		}
		add := page["add to the row"]
		require.EqualValues(t, 1, changes(add, 7, 20, -9))
		require.EqualValues(t, 1, changes(add, 7, 20, -1), "an equal token")
		require.Zero(t, changes(add, 7, 19, -1))
		require.Zero(t, changes(add, 8, 20, -1), "no such row")
		require.EqualValues(t, 990, d.remaining())
	})
}
