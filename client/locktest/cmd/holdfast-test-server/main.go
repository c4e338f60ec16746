// SPDX-License-Identifier: Apache-2.0

// Command holdfast-test-server serves the Redis in memory of package locktest on a TCP port, with
// the Holdfast library loaded: for the tests of other languages.
//
//	go run ./cmd/holdfast-test-server -addr 127.0.0.1:6390
//
// It prints its address when it is ready, and ends by SIGINT or SIGTERM. Port 0 is any free one.
// Commands that it does not model get an error reply and a line on standard error.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("holdfast-test-server: ")
	addr := flag.String("addr", "127.0.0.1:6390", "where to listen, as host:port")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unknown argument %q", flag.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, l, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run serves until the context ends.
func run(ctx context.Context, l net.Listener, out io.Writer) error {
	w := redis.New(redis.Options{Unmodelled: func(_, text string) { log.Printf("not modelled: %s", text) }})
	n := w.Node(l.Addr().String())
	if got := n.Do("FUNCTION", "LOAD", functions.Source); got != functions.Library {
		return fmt.Errorf("the library does not load: %v", got)
	}
	if _, err := fmt.Fprintln(out, l.Addr()); err != nil {
		return err
	}
	closed := context.AfterFunc(ctx, func() {
		_ = l.Close()
		w.Close()
	})
	defer closed()
	if err := n.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}
