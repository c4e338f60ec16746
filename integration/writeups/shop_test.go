package writeups

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
)

const (
	long  = time.Minute             // a lease that does not end while a test runs
	short = 300 * time.Millisecond  // one whose end a test waits for
	alive = 1500 * time.Millisecond // one that is renewed, also on a machine that is busy
	soon  = 10 * time.Second        // more than anything here takes
)

// shop is what a test works on: a server, keys of its own, plain commands, and
// clients, each of them as in a process of its own.
type shop struct {
	t      *testing.T
	ctx    context.Context
	option rueidis.ClientOption
	prefix string
	plain  plain
}

// open prepares a test on the server that the tests share.
func open(t *testing.T) *shop {
	t.Helper()
	d, err := shared()
	require.NoError(t, err)
	s := openAt(t, d.ClientOption())
	t.Cleanup(s.clean)
	return s
}

// openOwn prepares a test on a server of its own, with the library loaded.
func openOwn(t *testing.T) (*shop, *server.Deployment) {
	t.Helper()
	d := server.Single(t, server.Owned())
	d.Load(t)
	return openAt(t, d.ClientOption()), d
}

func openAt(t *testing.T, option rueidis.ClientOption) *shop {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s := &shop{t: t, ctx: ctx, option: option, prefix: "{writeups-" + rand.Text()[:8] + "}:"}
	s.plain = s.commands(option)
	return s
}

// clean removes the keys of the test from a server that others use too.
func (s *shop) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	redis := s.plain.redis
	keys, err := redis.Do(ctx, redis.B().Keys().Pattern(s.prefix+"*").Build()).AsStrSlice()
	require.NoError(s.t, err)
	if len(keys) > 0 {
		require.NoError(s.t, redis.Do(ctx, redis.B().Del().Key(keys...).Build()).Error())
	}
}

// client is a client as a process of its own has it.
func (s *shop) client(cfg client.Config) *client.Client { return s.clientAt(s.option, cfg) }

func (s *shop) clientAt(option rueidis.ClientOption, cfg client.Config) *client.Client {
	s.t.Helper()
	c, err := client.Open(option, s.config(cfg))
	require.NoError(s.t, err)
	s.t.Cleanup(c.Close)
	return c
}

// config sets what all clients here have in common: keys of this test, and
// silence about losses that are what the test is about.
func (s *shop) config(cfg client.Config) client.Config {
	cfg.Prefix = s.prefix
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	if cfg.Lease == 0 {
		cfg.Lease = long
	}
	return cfg
}

// take acquires a lock that comes free in time.
func (s *shop) take(c *client.Client, name string, opts ...client.Option) *client.Lock {
	s.t.Helper()
	l, err := c.Acquire(s.ctx, name, opts...)
	require.NoError(s.t, err)
	return l
}

// takeLate acquires a lock whose lease ends under its holder.
func (s *shop) takeLate(c *client.Client, name string) *client.Lock {
	s.t.Helper()
	return s.take(c, name, client.WithLease(short), client.WithoutRenewal())
}

func (s *shop) release(l *client.Lock) {
	s.t.Helper()
	require.NoError(s.t, l.Release(s.ctx))
}

// busy requires that the lock cannot be had, and says who has it.
func (s *shop) busy(c *client.Client, name string) *client.BusyError {
	s.t.Helper()
	_, err := c.TryAcquire(s.ctx, name)
	require.ErrorIs(s.t, err, client.ErrBusy)
	var busy *client.BusyError
	require.ErrorAs(s.t, err, &busy)
	return busy
}

// free requires that the lock can be had.
func (s *shop) free(c *client.Client, name string) {
	s.t.Helper()
	l, err := c.TryAcquire(s.ctx, name)
	require.NoError(s.t, err)
	s.release(l)
}

// holder requires that this lock is the one that the server knows of.
func (s *shop) holder(c *client.Client, l *client.Lock) client.Info {
	s.t.Helper()
	info, err := c.Inspect(s.ctx, l.Name())
	require.NoError(s.t, err)
	require.True(s.t, info.Held)
	require.Equal(s.t, l.Owner(), info.Holder.Owner)
	return info
}

// ended blocks until the lock is lost, and requires that it was for this reason.
func (s *shop) ended(l *client.Lock, why error) {
	s.t.Helper()
	select {
	case <-l.Context().Done():
		require.ErrorIs(s.t, context.Cause(l.Context()), why)
	case <-s.ctx.Done():
		require.Fail(s.t, "the lock is not lost")
	}
}

// line blocks until so many wait for the lock.
func (s *shop) line(c *client.Client, name string, waiters int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		info, err := c.Inspect(s.ctx, name)
		return err == nil && info.Waiters == waiters
	}, soon, time.Millisecond)
}

func (s *shop) key(name string) string { return s.prefix + name }

// call runs a function of the library as any language can.
func (s *shop) call(function, name string, args ...string) []rueidis.RedisMessage {
	s.t.Helper()
	reply, err := s.plain.do(append([]string{"FCALL", function, "1", s.key(name)}, args...)...).ToArray()
	require.NoError(s.t, err)
	return reply
}

// refuses requires that the server says 'not yours' to an owner.
func (s *shop) refuses(function, name, owner string, args ...string) {
	s.t.Helper()
	yes, err := s.call(function, name, append([]string{owner}, args...)...)[0].AsInt64()
	require.NoError(s.t, err)
	require.Zero(s.t, yes)
}

// leased requires that the lock's key cannot stay for ever.
func (s *shop) leased(name string) time.Duration {
	s.t.Helper()
	ttl := s.plain.ttl(s.key(name))
	require.Positive(s.t, ttl, "%s has no TTL", name)
	return ttl
}

// fcalls counts the calls of functions that the server ran.
func (s *shop) fcalls() int { return s.plain.calls("fcall") }

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
