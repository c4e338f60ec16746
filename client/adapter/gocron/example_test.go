// SPDX-License-Identifier: Apache-2.0

package holdfastgocron_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	holdfastgocron "github.com/holdfast-go/holdfast/client/adapter/gocron"
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

func open() *client.Client {
	c, err := client.Open(rueidis.ClientOption{InitAddress: []string{address}}, client.Config{AutoLoad: true})
	if err != nil {
		log.Fatal(err)
	}
	return c
}

// Three processes schedule the same report, and one of them does it.
func ExampleLocker() {
	done := make(chan int64, 3)
	for range 3 { // processes
		c := open()
		defer c.Close()
		locker, err := holdfastgocron.NewLocker(c, 54*time.Minute)
		if err != nil {
			log.Fatal(err)
		}
		s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
		if err != nil {
			log.Fatal(err)
		}
		_, err = s.NewJob(gocron.DurationJob(time.Hour), locker.Task(func(ctx context.Context) error {
			done <- client.Fence(ctx) // ctx ends if the lock is lost
			return nil
		}), gocron.WithName("report"), gocron.WithStartAt(gocron.WithStartImmediately()))
		if err != nil {
			log.Fatal(err)
		}
		s.Start()
		defer s.Shutdown()
	}
	fmt.Println("reported with a token:", <-done > 0)
	// Output: reported with a token: true
}

// One of the processes runs all jobs. It goes, and another one does.
func ExampleElector() {
	ctx := context.Background()
	first, second := open(), open()
	defer first.Close()
	defer second.Close()

	leader := holdfastgocron.NewElector(first, "reports")
	if _, err := leader.Await(ctx); err != nil {
		log.Fatal(err)
	}
	heir := holdfastgocron.NewElector(second, "reports")
	defer heir.Close()
	fmt.Println(heir.IsLeader(ctx))

	s, err := gocron.NewScheduler(gocron.WithDistributedElector(heir))
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan struct{}, 1)
	_, err = s.NewJob(gocron.DurationJob(10*time.Millisecond), gocron.NewTask(func() {
		select {
		case done <- struct{}{}:
		default:
		}
	}))
	if err != nil {
		log.Fatal(err)
	}
	s.Start()
	defer s.Shutdown()

	leader.Close()
	<-done
	fmt.Println("the heir reports")
	// Output:
	// holdfast: gocron: not the leader
	// the heir reports
}
