// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA4006 errors are used as the page does it

package holdfastgoose_test

import (
	"database/sql"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/holdfast-go/holdfast/client"
	holdfastgoose "github.com/holdfast-go/holdfast/client/adapter/goose"
)

// page is the code of docs/adapters.md, which leaves errors to the reader: it compiles.
func page(c *client.Client, db *sql.DB, migrations fs.FS) {
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations,
		goose.WithLocker(holdfastgoose.NewLocker(c, "migrate:shop")))
	_, _ = p, err
}

var _ = page
