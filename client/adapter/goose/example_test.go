// SPDX-License-Identifier: Apache-2.0

package holdfastgoose_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"sync"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	holdfastgoose "github.com/holdfast-go/holdfast/client/adapter/goose"
	"github.com/holdfast-go/holdfast/integration/server"
)

// address is of the real server that the Examples run on.
var address string

func TestMain(m *testing.M) { os.Exit(serve(m)) }

func serve(m *testing.M) int {
	d, err := server.Start(context.Background(), server.Spec{})
	if err != nil {
		log.Print(err)
		return 1
	}
	defer d.Close()
	address = d.Addrs()[0]
	return m.Run()
}

// Three processes start, and one of them migrates the database.
func ExampleLocker() {
	shop := &versions{} // the database
	create := goose.NewGoMigration(1, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		return nil // tx.ExecContext(ctx, "CREATE TABLE ...")
	}}, nil)
	var mu sync.Mutex
	applied := map[int]int{}
	var processes sync.WaitGroup
	for range 3 {
		processes.Go(func() {
			c, err := client.Open(rueidis.ClientOption{InitAddress: []string{address}}, client.Config{AutoLoad: true})
			if err != nil {
				log.Fatal(err)
			}
			defer c.Close()
			db := sql.OpenDB(connector{})
			defer db.Close()
			p, err := goose.NewProvider("", db, nil, goose.WithStore(shop), goose.WithGoMigrations(create),
				goose.WithLocker(holdfastgoose.NewLocker(c, "migrate:shop")))
			if err != nil {
				log.Fatal(err)
			}
			results, err := p.Up(context.Background())
			if err != nil {
				log.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			applied[len(results)]++
		})
	}
	processes.Wait()
	fmt.Println("migrated:", applied[1])
	fmt.Println("found nothing to do:", applied[0])
	// Output:
	// migrated: 1
	// found nothing to do: 2
}
