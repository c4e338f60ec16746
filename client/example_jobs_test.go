package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/redis/rueidis"
)

// Every process of a fleet asks; one of them runs the report, once an hour.
func ExampleClient_Once() {
	c := open()
	defer c.Close()
	ctx := context.Background()
	for range 2 {
		run, err := c.Once(ctx, "hourly report", 59*time.Minute, func(ctx context.Context) error {
			fmt.Println("reporting")
			return nil
		}, client.WithLabel("worker 7"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(run.Ran, run.By.Label, "again in", run.End.Round(time.Hour))
	}
	// Output:
	// reporting
	// true worker 7 again in 1h0m0s
	// false worker 7 again in 1h0m0s
}

// A timer on each host: whoever is first cleans up, and the others have nothing to do.
func ExampleClient_TryDo() {
	c := open()
	defer c.Close()
	tick := func(ctx context.Context) error {
		err := c.TryDo(ctx, "clean-up", func(ctx context.Context) error {
			fmt.Println("cleaning up")
			return nil
		}, client.WithoutReentry())
		if errors.Is(err, client.ErrBusy) {
			return nil
		}
		return err
	}
	_ = c.TryDo(context.Background(), "clean-up", func(ctx context.Context) error {
		fmt.Println(tick(ctx)) // somebody else's, meanwhile
		return nil
	})
	fmt.Println(tick(context.Background()))
	// Output:
	// <nil>
	// cleaning up
	// <nil>
}

// Who leads works until it has to stop, and others see where it can be reached.
func ExampleClient_Lead() {
	c := open()
	defer c.Close()
	ctx := context.Background()
	err := c.Lead(ctx, "scheduler", func(ctx context.Context) error { // ctx ends when the lead is lost
		for info, err := range c.Watch(ctx, "scheduler") { // in any process
			fmt.Println("ask", info.Holder.Label, err)
			break
		}
		return nil // ErrResign lets another one lead, and campaigns again
	}, client.WithLabel("10.1.2.3:8080"))
	fmt.Println(err)
	// Output:
	// ask 10.1.2.3:8080 <nil>
	// <nil>
}

// A transfer holds both accounts, in whichever order they are named.
func ExampleClient_DoAll() {
	c := open()
	defer c.Close()
	left := map[string]int{"alice": 10, "bob": 10}
	transfer := func(from, to string) error {
		return c.DoAll(context.Background(), []string{"account:" + from, "account:" + to}, func(ctx context.Context) error {
			left[from]--
			left[to]++
			return ctx.Err()
		})
	}
	var work sync.WaitGroup
	for range 3 {
		work.Go(func() { _ = transfer("alice", "bob") })
		work.Go(func() { _ = transfer("bob", "alice") })
	}
	work.Wait()
	fmt.Println(left)
	// Output: map[alice:10 bob:10]
}

// An Observer counts, here in variables.
func ExampleObserver() {
	var held, lost int
	c, err := client.Open(rueidis.ClientOption{InitAddress: []string{address}}, client.Config{Observer: &client.Observer{
		Released: func(t client.Tenure) { held++ },
		Lost:     func(t client.Tenure) { lost++ },
	}})
	if err != nil {
		log.Fatal(err)
	}
	_ = c.Do(context.Background(), "order:43", func(ctx context.Context) error { return nil })
	_, _ = c.Acquire(context.Background(), "order:44")
	c.Close() // a lock that is held ends with its client
	fmt.Println(held, lost)
	// Output: 1 1
}
