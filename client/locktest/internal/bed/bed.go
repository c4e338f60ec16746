// SPDX-License-Identifier: Apache-2.0

// Package bed is what tests of clients in virtual time stand on: a world of package redis in a
// bubble of testing/synctest, with a watchdog.
package bed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// Bubble runs a test in virtual time. A bubble whose time stands still, or never ends, hangs without
// a message: a watchdog ends it.
func Bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	dog := time.AfterFunc(2*time.Minute, func() {
		stacks := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "%s hangs\n%s\n", t.Name(), stacks[:runtime.Stack(stacks, true)])
		os.Exit(2)
	})
	defer dog.Stop()
	synctest.Test(t, test)
}

// In runs a test in a world of its own. Everything is closed at its end, and goroutines that stay are
// a failure.
func In(t *testing.T, opt redis.Options, test func(t *testing.T, w *redis.World)) {
	t.Helper()
	Bubble(t, func(t *testing.T) {
		opt.Unmodelled = func(node, text string) { t.Errorf("%s: not modelled: %s", node, text) }
		if opt.Latency == 0 {
			opt.Latency = 200 * time.Microsecond
		}
		w := redis.New(opt)
		t.Cleanup(func() { // behind those of clients
			time.Sleep(2 * time.Minute) // what is given back in the background ends, and rueidis' own goroutines
			w.Close()
		})
		test(t, w)
	})
}

// Each runs a test of every case in a world of its own.
func Each[C any](t *testing.T, cases map[string]C, test func(t *testing.T, w *redis.World, c C)) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			In(t, redis.Options{}, func(t *testing.T, w *redis.World) { test(t, w, c) })
		})
	}
}

// Must returns v, and panics if there is an error.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Load loads the library.
func Load(t *testing.T, nodes ...*redis.Node) {
	t.Helper()
	for _, n := range nodes {
		if got := n.Do("FUNCTION", "LOAD", "REPLACE", functions.Source); got != functions.Library {
			t.Fatalf("the library does not load at %s: %v", n.Addr(), got)
		}
	}
}

// Loaded starts a server with the library.
func Loaded(t *testing.T, w *redis.World, addr string) *redis.Node {
	t.Helper()
	n := w.Node(addr)
	Load(t, n)
	return n
}

// Options are those of a client on a host.
func Options(w *redis.World, host string, addr ...string) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: addr, DialCtxFn: w.Host(host).Dial, MaxFlushDelay: -1}
}

// Single are the options of a client of one server.
func Single(w *redis.World, host, addr string) rueidis.ClientOption {
	opt := Options(w, host, addr)
	opt.ForceSingleClient = true
	return opt
}

// Open opens a client, which is closed at the test's end.
func Open(t *testing.T, opt rueidis.ClientOption, cfg client.Config) *client.Client {
	t.Helper()
	return Closing(t, Must(client.Open(opt, Quiet(cfg))))
}

// Waits lets a client wait for a lock, again where that fails with the one error that may be, and returns it.
func Waits(t *testing.T, c *client.Client, name string, may error, opts ...client.Option) <-chan *client.Lock {
	got := make(chan *client.Lock, 1)
	go func() {
		defer close(got)
		for t.Context().Err() == nil {
			l, err := c.Acquire(t.Context(), name, opts...)
			if err == nil {
				got <- l
				return
			}
			if (may == nil || !errors.Is(err, may)) && t.Context().Err() == nil {
				t.Errorf("who waits is told: %v", err)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return got
}

// Quiet is a configuration that logs nothing if it has no Logger.
func Quiet(cfg client.Config) client.Config {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return cfg
}

// Closing closes a client at the test's end.
func Closing(t *testing.T, c *client.Client) *client.Client {
	t.Helper()
	t.Cleanup(c.Close)
	return c
}

// kinds are those of which each error has one.
var kinds = map[string]error{"busy": client.ErrBusy, "timeout": client.ErrTimeout, "unreachable": client.ErrUnreachable,
	"closed": client.ErrClosed, "lost": client.ErrLost, "invalid": client.ErrInvalid, "canceled": context.Canceled}

// Kinds returns those that err is of.
func Kinds(err error) (of []string) {
	for name, kind := range kinds {
		if errors.Is(err, kind) {
			of = append(of, name)
		}
	}
	return of
}
