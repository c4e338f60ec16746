package fencing

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	_ "github.com/holdfast-go/holdfast/integration/server/container" // servers may be containers
)

// sell writes what is left behind a claim. The statement is of
// docs/fencing.md.
func sell(ctx context.Context, db *sql.DB, product, token, remaining int64) error {
	result, err := db.ExecContext(ctx, page[updateRow], product, token, remaining)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return fmt.Errorf("refused: a newer holder has sold product %d", product)
}

// A holder is paused beyond its lease. Meanwhile another one has the lock and writes. The database
// refuses what the first one writes when it wakes up.
func Example() {
	ctx := context.Background()
	d, err := server.Start(ctx, server.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	open := func() *client.Client {
		c, err := client.Open(rueidis.ClientOption{InitAddress: d.Addrs()}, client.Config{AutoLoad: true})
		if err != nil {
			log.Fatal(err)
		}
		return c
	}
	dir, err := os.MkdirTemp("", "holdfast-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", sqliteDSN(filepath.Join(dir, "shop.db")))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(page[createStock] + "; INSERT INTO stock (id, remaining) VALUES (7, 12)"); err != nil {
		log.Fatal(err)
	}

	// Nothing renews the lock of a process that is paused.
	first := open()
	defer first.Close()
	lock, err := first.Acquire(ctx, "stock:7", client.WithLease(time.Second), client.WithoutRenewal())
	if err != nil {
		log.Fatal(err)
	}
	read, _, err := claim(db, 7, lock.Fence())
	fmt.Println("the first holder reads", read, err)

	second := open()
	defer second.Close()
	err = second.Do(ctx, "stock:7", func(ctx context.Context) error { // waits for the end of the lease
		token := client.Fence(ctx)
		read, _, err := claim(db, 7, token)
		if err != nil {
			return err
		}
		fmt.Println("the second holder sells one of", read)
		return sell(ctx, db, 7, token, read-1)
	})
	fmt.Println(err)

	fmt.Println("the first holder wakes up")
	fmt.Println(sell(ctx, db, 7, lock.Fence(), read-1))
	// Output:
	// the first holder reads 12 <nil>
	// the second holder sells one of 12
	// <nil>
	// the first holder wakes up
	// refused: a newer holder has sold product 7
}
