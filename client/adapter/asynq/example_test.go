// SPDX-License-Identifier: Apache-2.0

package holdfastasynq_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync"
	"testing"

	"github.com/hibiken/asynq"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	holdfastasynq "github.com/holdfast-go/holdfast/client/adapter/asynq"
	"github.com/holdfast-go/holdfast/integration/server"
)

// address is of the real server that the Examples and tests with asynq run on.
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

// Two processes schedule the same task, and the one that leads enqueues it. It ends, and the other
// one does.
func ExampleRun() {
	enqueued := make(chan string, 100)
	run := func(ctx context.Context, process string) error {
		c := open()
		defer c.Close()
		return holdfastasynq.Run(ctx, c, "scheduler", func() (holdfastasynq.Scheduler, error) {
			s := asynq.NewScheduler(asynq.RedisClientOpt{Addr: address}, &asynq.SchedulerOpts{
				PostEnqueueFunc: func(_ *asynq.TaskInfo, err error) { enqueued <- fmt.Sprint(process, ": ", err) },
				LogLevel:        asynq.FatalLevel,
			})
			_, err := s.Register("@every 1s", asynq.NewTask("report", nil))
			return s, err
		})
	}
	ctx, stop := context.WithCancel(context.Background())
	var first, second sync.WaitGroup
	first.Go(func() { fmt.Println("the first ends with", run(ctx, "first")) })
	fmt.Println(<-enqueued)

	both, stopBoth := context.WithCancel(context.Background())
	second.Go(func() { fmt.Println("the second ends with", run(both, "second")) })
	stop()
	first.Wait()
	for len(enqueued) > 0 {
		<-enqueued
	}
	fmt.Println(<-enqueued)
	stopBoth()
	second.Wait()
	// Output:
	// first: <nil>
	// the first ends with <nil>
	// second: <nil>
	// the second ends with <nil>
}
