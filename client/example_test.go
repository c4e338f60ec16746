// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/reexec"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/redis/rueidis"
)

// address is of the real server that the Examples run on.
var address string

func TestMain(m *testing.M) {
	reexec.Main(map[string]reexec.Role{valued: values})
	os.Exit(run(m))
}

func run(m *testing.M) int {
	d, err := server.Start(context.Background(), server.Spec{})
	if err != nil {
		log.Print(err)
		return 1
	}
	defer d.Close()
	address = d.Addrs()[0]
	c := open()
	defer c.Close()
	// Other tests of the process must find the library; a client with AutoLoad loads it with its
	// first call.
	if _, err := c.Inspect(context.Background(), "example"); err != nil {
		log.Print(err)
		return 1
	}
	return m.Run()
}

func open() *client.Client {
	c, err := client.Open(rueidis.ClientOption{InitAddress: []string{address}}, client.Config{AutoLoad: true})
	if err != nil {
		log.Fatal(err)
	}
	return c
}

func ExampleClient_Do() {
	c := open()
	defer c.Close()
	err := c.Do(context.Background(), "order:42", func(ctx context.Context) error {
		fmt.Println("shipping, alone") // under ctx, which ends if the lock is lost
		token := client.Fence(ctx)     // for the resource: it refuses a lower one than it has seen
		fmt.Println(token > 0)
		return nil
	})
	fmt.Println(err)
	// Output:
	// shipping, alone
	// true
	// <nil>
}

func ExampleClient_TryAcquire() {
	c := open()
	defer c.Close()
	ctx := context.Background()
	lock, err := c.TryAcquire(ctx, "report", client.WithLabel("nightly"))
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Release(ctx)

	var busy *client.BusyError
	if _, err := c.TryAcquire(ctx, "report"); errors.As(err, &busy) {
		fmt.Println("held by", busy.Holder.Label, "- waiting:", busy.Waiters)
	}
	// Output: held by nightly - waiting: 0
}

func ExampleClient_Acquire() {
	c := open()
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	lock, err := c.Acquire(ctx, "stock:7") // waits in line, at most until ctx ends
	if err != nil {
		log.Fatal(err)
	}
	work := lock.Context() // ends before anybody else can have the lock
	fmt.Println(work.Err(), lock.Fence() > 0)
	if err := lock.Release(ctx); errors.Is(err, client.ErrLost) {
		fmt.Println("what was done may have run beside another holder")
	}
	fmt.Println(context.Cause(work))
	// Output:
	// <nil> true
	// released
}

// A lock's context re-enters the lock; a fresh one waits for it.
func ExampleLock_Context() {
	c := open()
	defer c.Close()
	outer, err := c.Acquire(context.Background(), "tree")
	if err != nil {
		log.Fatal(err)
	}
	inner, err := c.Acquire(outer.Context(), "tree")
	fmt.Println(err, inner.Fence() == outer.Fence())
	_, err = c.TryAcquire(context.Background(), "tree")
	fmt.Println(errors.Is(err, client.ErrBusy))
	fmt.Println(inner.Release(context.Background()), outer.Release(context.Background()))
	// Output:
	// <nil> true
	// true
	// <nil> <nil>
}

func ExampleWrap() {
	c := open()
	defer c.Close()
	left := map[string]int{"apple": 3}
	take := client.Wrap(c,
		func(product string) string { return client.Name("stock", product) },
		func(_ context.Context, product string) (int, error) {
			if left[product] == 0 {
				return 0, errors.New("sold out")
			}
			left[product]--
			return left[product], nil
		})
	fmt.Println(take(context.Background(), "apple"))
	fmt.Println(take(context.Background(), "pear"))
	// Output:
	// 2 <nil>
	// 0 sold out
}

func ExampleClient_Inspect() {
	c := open()
	defer c.Close()
	ctx := context.Background()
	lock, err := c.Acquire(ctx, "batch", client.WithLabel("import"))
	if err != nil {
		log.Fatal(err)
	}
	info, err := c.Inspect(ctx, "batch")
	fmt.Println(err, info.Held, info.Holder.Label, info.Fence == lock.Fence(), info.Waiters)
	broken, err := c.Break(ctx, "batch", "runaway job")
	fmt.Println(err, broken.Holder.Label)
	fmt.Println(errors.Is(lock.Release(ctx), client.ErrLost))
	// Output:
	// <nil> true import true 0
	// <nil> import
	// true
}

// A shop's web process takes the lock of an order, and the worker that ships it gives it back. Both
// know the owner's name.
func ExampleWithOwner() {
	web, worker := open(), open()
	defer worker.Close()
	ctx := context.Background()
	_, err := web.Acquire(ctx, "order:7", client.WithOwner("shipment 7"), client.WithLease(time.Minute))
	fmt.Println(err)
	web.Close() // the process ends; its lock goes on for its lease

	// joins it, and renews it from now on
	lock, err := worker.Acquire(ctx, "order:7", client.WithOwner("shipment 7"))
	fmt.Println(err, lock.Context().Err())
	fmt.Println(worker.ReleaseOwner(ctx, "order:7", "shipment 7")) // all holds of that owner
	info, err := worker.Inspect(ctx, "order:7")
	fmt.Println(err, info.Held)
	// Output:
	// <nil>
	// <nil> <nil>
	// <nil>
	// <nil> false
}

// At most once per interval: the first of many processes does the work, however short it is.
func ExampleWithMinHold() {
	ctx := context.Background()
	hourly := client.WithOptions(client.WithMinHold(time.Hour), client.WithLabel("hourly report"))
	for range 3 { // processes
		c := open()
		_, err := client.TryValue(ctx, c, "report:hourly", func(context.Context) (int, error) {
			fmt.Println("reporting")
			return 0, nil
		}, hourly)
		if errors.Is(err, client.ErrBusy) {
			fmt.Println("done already")
		}
		c.Close()
	}
	// Output:
	// reporting
	// done already
	// done already
}

// A step that must not be cut short asks for a longer lease before it starts.
func ExampleLock_RenewFor() {
	c := open()
	defer c.Close()
	ctx := context.Background()
	lock, err := c.Acquire(ctx, "migration", client.WithLease(10*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Release(ctx)
	fmt.Println(lock.Remaining() > time.Minute)
	fmt.Println(lock.RenewFor(ctx, 10*time.Minute))
	fmt.Println(lock.Remaining() > time.Minute)
	// Output:
	// false
	// <nil>
	// true
}

// status is what a web handler answers. Every error is of exactly one kind, so the order of the
// cases does not matter.
func status(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, client.ErrBusy):
		return http.StatusConflict // another has it: try again later
	case errors.Is(err, client.ErrTimeout):
		return http.StatusGatewayTimeout // waited for it in vain
	case errors.Is(err, client.ErrUnreachable), errors.Is(err, client.ErrClosed):
		return http.StatusServiceUnavailable // Redis, or this process, goes down
	case errors.Is(err, context.Canceled):
		return 499 // the browser is gone; nobody reads it
	case errors.Is(err, client.ErrLost), errors.Is(err, client.ErrInvalid):
		return http.StatusInternalServerError // look at the log
	}
	return http.StatusInternalServerError // of the work itself
}

func Example_status() {
	c := open()
	defer c.Close()
	ctx := context.Background()
	if _, err := c.Acquire(ctx, "cart:1"); err != nil {
		log.Fatal(err)
	}
	work := func(context.Context) error { return nil }
	_, err := c.TryAcquire(ctx, "cart:1")
	fmt.Println(status(err))
	fmt.Println(status(c.Do(ctx, "cart:1", work, client.WithMaxWait(50*time.Millisecond))))
	fmt.Println(status(c.Do(ctx, "", work)))
	fmt.Println(status(c.Do(ctx, "cart:2", work)))
	c.Close()
	fmt.Println(status(c.Do(ctx, "cart:2", work)))
	// Output:
	// 409
	// 504
	// 500
	// 200
	// 503
}

// An owner string that stands in a log says who it was.
func ExampleParseHolder() {
	who := client.ParseHolder("web-3:4711:bKx1c9VnT0aQw2Zs:mhzqk3ty.2f:nightly report")
	fmt.Println(who.Host, who.PID, who.Label, who.Since.UTC().Format(time.DateOnly))
	fmt.Println(client.ParseHolder("web-4:815:q1Zx_7bTnT0aQw2Z")) // of another language
	fmt.Println(client.ParseHolder("worker-7"))
	// Output:
	// web-3 4711 nightly report 2025-11-15
	// web-4 pid 815
	// "worker-7"
}
