// SPDX-License-Identifier: Apache-2.0

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

// On SIGTERM: the work that has begun is finished, and its lock goes to another process then, at once.
func ExampleClient_Shutdown() {
	c := open()
	term := make(chan struct{}) // stands for signal.NotifyContext
	go func() {
		<-term
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := c.Shutdown(ctx); err != nil {
			log.Print(err)
		}
	}()
	for {
		err := c.Do(context.Background(), "batches", func(ctx context.Context) error {
			close(term)
			<-ctx.Done() // stop here, or finish what has begun
			fmt.Println(context.Cause(ctx))
			return nil
		})
		if errors.Is(err, client.ErrShutdown) {
			fmt.Println("done")
			return
		}
	}
	// Output:
	// holdfast: lock "batches": client shutting down
	// done
}

// No more than two beside one another, on all processes together. The slot says which of two it is: of two
// accounts, two ports, two files.
func ExampleWithLimit() {
	c := open()
	defer c.Close()
	ctx, two := context.Background(), client.WithLimit(2)
	for range 2 {
		lock, err := c.TryAcquire(ctx, "api", two)
		if err != nil {
			log.Fatal(err)
		}
		defer lock.Release(ctx)
		fmt.Println("slot", lock.Slot())
	}
	_, err := c.TryAcquire(ctx, "api", two)
	var busy *client.BusyError
	fmt.Println(errors.As(err, &busy), busy.Why)
	holders, err := c.Holders(ctx, "api")
	fmt.Println(err, len(holders))
	// Output:
	// slot 1
	// slot 2
	// true limited
	// <nil> 2
}

// Readers read together, and a writer writes alone, when those before it have left.
func ExampleWithShared() {
	c := open()
	defer c.Close()
	ctx, price := context.Background(), 7
	read := func(ctx context.Context) error {
		fmt.Println("the price is", price)
		return nil
	}
	reader, err := c.Acquire(ctx, "price", client.WithShared())
	if err != nil {
		log.Fatal(err)
	}
	written := make(chan error)
	fmt.Println(c.Do(ctx, "price", read, client.WithShared())) // beside the other one
	go func() {
		written <- c.Do(ctx, "price", func(context.Context) error {
			price++
			return nil
		})
	}()
	_ = read(reader.Context())
	_ = reader.Release(ctx)
	fmt.Println(<-written)
	fmt.Println(c.Do(ctx, "price", read, client.WithShared()))
	// Output:
	// the price is 7
	// <nil>
	// the price is 7
	// <nil>
	// the price is 8
	// <nil>
}
