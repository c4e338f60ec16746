// SPDX-License-Identifier: Apache-2.0

package holdfastcron_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/client"
	holdfastcron "github.com/holdfast-go/holdfast/client/adapter/cron"
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

// Three processes schedule the same report, and one of them does it.
func ExampleOnce() {
	done := make(chan int64, 3)
	for range 3 { // processes
		c, err := client.Open(rueidis.ClientOption{InitAddress: []string{address}}, client.Config{AutoLoad: true})
		if err != nil {
			log.Fatal(err)
		}
		defer c.Close()
		once, err := holdfastcron.Once(c, "report", 54*time.Minute, cron.DiscardLogger)
		if err != nil {
			log.Fatal(err)
		}
		report := func(ctx context.Context) { done <- client.Fence(ctx) } // ctx ends if the lock is lost
		job := cron.NewChain(cron.Recover(cron.DefaultLogger), once).Then(holdfastcron.Job(report))

		scheduler := cron.New()
		if _, err := scheduler.AddJob("@hourly", job); err != nil {
			log.Fatal(err)
		}
		scheduler.Start()
		defer scheduler.Stop()
		job.Run() // the hour strikes
	}
	fmt.Println("reported with a token:", <-done > 0)
	fmt.Println("once:", len(done) == 0)
	// Output:
	// reported with a token: true
	// once: true
}
