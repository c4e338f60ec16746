package writeups

import (
	"context"
	"crypto/rand"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

const (
	long  = testbed.Long            // a lease that does not end while a test runs
	short = 300 * time.Millisecond  // one whose end a test waits for
	alive = 1500 * time.Millisecond // one that is renewed, also on a machine that is busy
	soon  = 10 * time.Second        // more than anything here takes
)

// shop is a bed with plain commands. Each of its clients is as in a process of
// its own.
type shop struct {
	*testbed.Bed
	plain plain
}

// open prepares a test on the server that the tests share.
func open(t *testing.T) *shop {
	t.Helper()
	d, err := shared()
	require.NoError(t, err)
	s := openAt(t, d)
	t.Cleanup(s.clean)
	return s
}

// openOwn prepares a test on a server of its own, with the library loaded.
func openOwn(t *testing.T) *shop {
	t.Helper()
	d := server.Single(t, server.Owned())
	d.Load(t)
	return openAt(t, d)
}

func openAt(t *testing.T, d *server.Deployment) *shop {
	t.Helper()
	b := testbed.Lay(t, d, "{writeups-"+rand.Text()[:8]+"}:")
	return &shop{b, plain{b}}
}

// clean removes the keys of the test from a server that others use too.
func (s *shop) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	keys, err := s.Redis.Do(ctx, s.Redis.B().Keys().Pattern(s.Prefix+"*").Build()).AsStrSlice()
	require.NoError(s.TB, err)
	if len(keys) > 0 {
		require.NoError(s.TB, s.Redis.Do(ctx, s.Redis.B().Del().Key(keys...).Build()).Error())
	}
}

// client is a client whose locks stay for the length of a test by default.
func (s *shop) client(cfg client.Config) *client.Client {
	s.TB.Helper()
	if cfg.Lease == 0 {
		cfg.Lease = long
	}
	return s.Connect(s.D.ClientOption(), cfg)
}

// take acquires a lock that comes free in time.
func (s *shop) take(c *client.Client, name string, opts ...client.Option) *client.Lock {
	s.TB.Helper()
	return s.Locked(s.Acquire(s.Ctx, c, name, opts...)).Lock
}

// takeLate acquires a lock whose lease ends under its holder.
func (s *shop) takeLate(c *client.Client, name string) *client.Lock {
	s.TB.Helper()
	return s.take(c, name, client.WithLease(short), client.WithoutRenewal())
}

// busy requires that the lock cannot be had, and says who has it.
func (s *shop) busy(c *client.Client, name string) *client.BusyError {
	s.TB.Helper()
	_, err := c.TryAcquire(s.Ctx, name)
	require.ErrorIs(s.TB, err, client.ErrBusy)
	var busy *client.BusyError
	require.ErrorAs(s.TB, err, &busy)
	return busy
}

// free requires that the lock can be had.
func (s *shop) free(c *client.Client, name string) {
	s.TB.Helper()
	s.Release(s.Take(c, name))
}

// holder requires that this lock is the one that the server knows of.
func (s *shop) holder(c *client.Client, l *client.Lock) client.Info {
	s.TB.Helper()
	info, err := c.Inspect(s.Ctx, l.Name())
	require.NoError(s.TB, err)
	require.True(s.TB, info.Held)
	require.Equal(s.TB, l.Owner(), info.Holder.Owner)
	return info
}

// ended blocks until the lock is lost, and requires that it was for this reason.
func (s *shop) ended(l *client.Lock, why error) {
	s.TB.Helper()
	require.ErrorIs(s.TB, s.Ended(l.Context()), why)
}

func (s *shop) key(name string) string { return s.Prefix + name }

// call runs a function of the library as any language can.
func (s *shop) call(function, name string, args ...string) []rueidis.RedisMessage {
	s.TB.Helper()
	reply, err := s.plain.do(append([]string{"FCALL", function, "1", s.key(name)}, args...)...).ToMessage()
	require.NoError(s.TB, err)
	if reply.IsInt64() {
		return []rueidis.RedisMessage{reply}
	}
	values, err := reply.ToArray()
	require.NoError(s.TB, err)
	return values
}

// refuses requires that the server says 'not yours' to an owner.
func (s *shop) refuses(function, name, owner string, args ...string) {
	s.TB.Helper()
	yes, err := s.call(function, name, append([]string{owner}, args...)...)[0].AsInt64()
	require.NoError(s.TB, err)
	require.Zero(s.TB, yes)
}

// leased requires that the lock's key cannot stay for ever.
func (s *shop) leased(name string) time.Duration {
	s.TB.Helper()
	ttl := s.plain.ttl(s.key(name))
	require.Positive(s.TB, ttl, "%s has no TTL", name)
	return ttl
}

// fcalls counts the calls of functions that the server ran.
func (s *shop) fcalls() int { return s.plain.calls("fcall") }

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
