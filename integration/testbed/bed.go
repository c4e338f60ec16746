// SPDX-License-Identifier: Apache-2.0

// Package testbed is what tests of the client stand on: a deployment, keys that
// no other test uses, and the steps that most tests take.
package testbed

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
)

// Within is how long an event may take on a busy machine before its test fails;
// Long is a lease that outlives a test.
const (
	Within = 30 * time.Second
	Long   = time.Minute
)

// Bed is a deployment, and the keys of one test on it.
type Bed struct {
	TB     testing.TB
	D      *server.Deployment
	Redis  rueidis.Client // for looking behind the client's back
	Prefix string
	Ctx    context.Context // the test's, with a deadline
}

// Lay prepares a test on a deployment.
func Lay(tb testing.TB, d *server.Deployment, prefix string) *Bed {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute)
	tb.Cleanup(cancel)
	redis, err := rueidis.NewClient(d.ClientOption())
	require.NoError(tb, err)
	tb.Cleanup(redis.Close)
	return &Bed{TB: tb, D: d, Redis: redis, Prefix: prefix, Ctx: ctx}
}

// Connect returns a client of its own, closed at the end of the test. It is for
// the bed's keys, and says nothing about losses, if cfg does not say otherwise.
func (b *Bed) Connect(option rueidis.ClientOption, cfg client.Config) *client.Client {
	b.TB.Helper()
	c, err := client.Open(option, b.Configured(cfg))
	require.NoError(b.TB, err)
	b.TB.Cleanup(c.Close)
	return c
}

// Configured is cfg as Connect uses it.
func (b *Bed) Configured(cfg client.Config) client.Config {
	if cfg.Prefix == "" {
		cfg.Prefix = b.Prefix
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg
}

// Through returns a client of its own behind a proxy of its own to the first
// node.
func (b *Bed) Through(cfg client.Config) (*client.Client, *server.Proxy) {
	b.TB.Helper()
	proxy := server.NewProxy(b.TB, b.D.Nodes()[0].Addr)
	option := b.D.ClientOption()
	option.InitAddress = []string{proxy.Addr}
	return b.Connect(option, cfg), proxy
}

// Take acquires a lock that must be free.
func (b *Bed) Take(c *client.Client, name string, opts ...client.Option) *client.Lock {
	b.TB.Helper()
	l, err := c.TryAcquire(b.Ctx, name, opts...)
	require.NoError(b.TB, err)
	return l
}

// Release gives back a lock that must be held.
func (b *Bed) Release(l *client.Lock) {
	b.TB.Helper()
	require.NoError(b.TB, l.Release(b.Ctx))
}

// Outcome is what an Acquire in the background returned.
type Outcome struct {
	Lock *client.Lock
	Err  error
	At   time.Time
}

// Acquire calls Acquire in the background.
func (b *Bed) Acquire(ctx context.Context, c *client.Client, name string, opts ...client.Option) <-chan Outcome {
	done := make(chan Outcome, 1)
	go func() {
		l, err := c.Acquire(ctx, name, opts...)
		done <- Outcome{l, err, time.Now()}
	}()
	return done
}

// Locked waits for an Acquire that must succeed.
func (b *Bed) Locked(from <-chan Outcome) Outcome {
	b.TB.Helper()
	o := Got(b.TB, from)
	require.NoError(b.TB, o.Err)
	return o
}

// Line blocks until so many wait for the lock.
func (b *Bed) Line(c *client.Client, name string, waiters int) {
	b.TB.Helper()
	b.Eventually("waiters in line", func() bool {
		info, err := c.Inspect(b.Ctx, name)
		return err == nil && info.Waiters == waiters
	})
}

// Do sends a command to the node of a lock's key.
func (b *Bed) Do(name string, command ...string) rueidis.RedisResult {
	b.TB.Helper()
	return b.Redis.Do(b.Ctx, b.Redis.B().Arbitrary(command[0]).Keys(b.Prefix+name).Args(command[1:]...).Build())
}

// Until is when the server says that a lease ends, in its milliseconds; 0 when nobody has the lock.
func (b *Bed) Until(name string) int64 {
	n, _ := b.Do(name, "HGET", "until").AsInt64()
	return n
}

// Renewals blocks until the server saw the lease start anew n times.
func (b *Bed) Renewals(name string, n int) {
	b.TB.Helper()
	last, seen := b.Until(name), 0
	b.Eventually("renewals", func() bool {
		if now := b.Until(name); now > last {
			last, seen = now, seen+1
		}
		return seen >= n
	})
}

// Exists reports whether anything of the lock is left on the server.
func (b *Bed) Exists(name string) bool {
	b.TB.Helper()
	n, err := b.Do(name, "EXISTS").AsInt64()
	require.NoError(b.TB, err)
	return n == 1
}

// Eventually polls a condition that tells nobody when it becomes true.
func (b *Bed) Eventually(what string, condition func() bool) {
	b.TB.Helper()
	require.Eventually(b.TB, condition, Within, 2*time.Millisecond, what)
}

// Ended waits for the end of a context and returns its cause.
func (b *Bed) Ended(ctx context.Context) error {
	b.TB.Helper()
	Got(b.TB, ctx.Done())
	return context.Cause(ctx)
}

// Got waits for what must come.
func Got[T any](tb testing.TB, from <-chan T) (value T) {
	tb.Helper()
	select {
	case value = <-from:
	case <-time.After(Within):
		require.Fail(tb, "nothing came")
	}
	return value
}
