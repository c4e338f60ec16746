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

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
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
		t.Cleanup(func() { // behind those of clients
			time.Sleep(10 * time.Second) // rueidis' own goroutines end some seconds after Close
			w.Close()
		})
		test(t, w)
	})
}

// each runs a test of every case in a bubble.
func each[C any](t *testing.T, cases map[string]C, test func(t *testing.T, w *redis.World, c C)) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) { test(t, w, c) })
		})
	}
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
		require.Equal(t, functions.Library, n.Do("FUNCTION", "LOAD", "REPLACE", functions.Source), n.Addr())
	}
}

// loaded starts a server with the library.
func loaded(t *testing.T, w *redis.World, addr string) *redis.Node {
	t.Helper()
	n := w.Node(addr)
	load(t, n)
	return n
}

// ownerOf returns the primary of a key, and one of the others.
func ownerOf(w *redis.World, key string, primaries []*redis.Node) (owner, other *redis.Node) {
	if owner, other = w.Owner(key), primaries[0]; owner == other {
		other = primaries[1]
	}
	return owner, other
}

func options(w *redis.World, host string, addr ...string) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: addr, DialCtxFn: w.Host(host).Dial, MaxFlushDelay: -1}
}

// open returns a client of locks on a single server.
func open(t *testing.T, w *redis.World, host, addr string) *client.Client {
	t.Helper()
	return onServer(t, w, host, addr, client.Config{})
}

func onServer(t *testing.T, w *redis.World, host, addr string, cfg client.Config) *client.Client {
	t.Helper()
	opt := options(w, host, addr)
	opt.ForceSingleClient = true
	return openWith(t, opt, cfg)
}

func openWith(t *testing.T, opt rueidis.ClientOption, cfg client.Config) *client.Client {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	c, err := client.Open(opt, cfg)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func expect(t *testing.T, got, want any) {
	t.Helper()
	if g, w := fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want); g != w {
		t.Fatalf("got %s, want %s", g, w)
	}
}

var ctx = context.Background()
