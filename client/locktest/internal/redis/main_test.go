package redis_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

// watchdog ends a bubble whose time stands still: that hangs without a message.
const watchdog = 60 * time.Second

// bubble runs a test in virtual time. Everything is closed at its end, and goroutines that stay are
// a failure.
func bubble(t *testing.T, opt redis.Options, test func(t *testing.T, w *redis.World)) {
	t.Helper()
	dog := time.AfterFunc(watchdog, func() {
		stacks := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "time stands still in %s\n%s\n", t.Name(), stacks[:runtime.Stack(stacks, true)])
		os.Exit(2)
	})
	defer dog.Stop()
	synctest.Test(t, func(t *testing.T) {
		opt.Unmodelled = func(node, text string) { t.Errorf("%s: not modelled: %s", node, text) }
		if opt.Latency == 0 {
			opt.Latency = 200 * time.Microsecond
		}
		w := redis.New(opt)
		test(t, w)
		time.Sleep(10 * time.Second) // rueidis' own goroutines end some seconds after Close
		w.Close()
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func load(t *testing.T, nodes ...*redis.Node) {
	t.Helper()
	for _, n := range nodes {
		if got := n.Do("FUNCTION", "LOAD", "REPLACE", functions.Source); got != functions.Library {
			t.Fatalf("FUNCTION LOAD at %s: %v", n.Addr(), got)
		}
	}
}

func options(w *redis.World, host string, addr ...string) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: addr, DialCtxFn: w.Host(host).Dial, MaxFlushDelay: -1}
}

// open returns a client of locks on a single server.
func open(t *testing.T, w *redis.World, host, addr string) *client.Client {
	t.Helper()
	opt := options(w, host, addr)
	opt.ForceSingleClient = true
	return openWith(t, opt, client.Config{})
}

func openWith(t *testing.T, opt rueidis.ClientOption, cfg client.Config) *client.Client {
	t.Helper()
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	c, err := client.Open(opt, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func expect(t *testing.T, got, want any) {
	t.Helper()
	if g, w := fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want); g != w {
		t.Fatalf("got %s, want %s", g, w)
	}
}

var ctx = context.Background()

var source = functions.Source
