package writeups

import (
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
	long  = testbed.Long           // a lease that does not end while a test runs
	short = 300 * time.Millisecond // one whose end a test waits for
	// keyOutlives is how much longer the key lives than the lease, which holds through its last millisecond.
	keyOutlives = time.Millisecond
)

func TestMain(m *testing.M) { testbed.Main(m) }

// bed is a server with plain commands, which naive locks are made of. Each of its clients is as in a process
// of its own.
type bed struct{ *testbed.Bed }

// open prepares a test on the server that the tests share.
func open(t *testing.T) *bed {
	t.Helper()
	return openAt(t, testbed.Share(t, server.Spec{Own: true}))
}

// openOwn prepares a test on a server of its own, with the library loaded.
func openOwn(t *testing.T) *bed {
	t.Helper()
	d := server.Single(t, server.Owned())
	d.Load(t)
	return openAt(t, d)
}

func openAt(t *testing.T, d *server.Deployment) *bed {
	t.Helper()
	return &bed{testbed.Lay(t, d, "{writeups-"+rand.Text()[:8]+"}:")}
}

// client is a client whose locks stay for the length of a test by default.
func (b *bed) client(cfg client.Config) *client.Client {
	b.TB.Helper()
	if cfg.Lease == 0 {
		cfg.Lease = long
	}
	return b.Connect(b.D.ClientOption(), cfg)
}

// take acquires a lock that comes free in time.
func (b *bed) take(c *client.Client, name string, opts ...client.Option) *client.Lock {
	b.TB.Helper()
	return b.Locked(b.Acquire(b.Ctx, c, name, opts...)).Lock
}

// takeLate acquires a lock whose lease ends under its holder.
func (b *bed) takeLate(c *client.Client, name string) *client.Lock {
	b.TB.Helper()
	return b.take(c, name, client.WithLease(short), client.WithoutRenewal())
}

// free requires that the lock can be had.
func (b *bed) free(c *client.Client, name string) {
	b.TB.Helper()
	b.Release(b.Take(c, name))
}

// holder requires that this lock is the one that the server knows of.
func (b *bed) holder(c *client.Client, l *client.Lock) client.Info {
	b.TB.Helper()
	info, err := c.Inspect(b.Ctx, l.Name())
	require.NoError(b.TB, err)
	require.True(b.TB, info.Held)
	require.Equal(b.TB, l.Owner(), info.Holder.Owner)
	return info
}

// number runs a command on a key, which answers a number, OK (1), or nothing (0).
func (b *bed) number(command, name string, args ...string) int64 {
	b.TB.Helper()
	reply, err := b.Do(name, append([]string{command}, args...)...).ToMessage()
	if rueidis.IsRedisNil(err) {
		return 0
	}
	require.NoError(b.TB, err)
	if n, err := reply.AsInt64(); err == nil {
		return n
	}
	return 1
}

// set is SET NX PX.
func (b *bed) set(name, value string, lease time.Duration) bool {
	b.TB.Helper()
	return b.number("SET", name, value, "NX", "PX", milliseconds(lease)) == 1
}

func (b *bed) del(name string) bool { b.TB.Helper(); return b.number("DEL", name) == 1 }

// unset is the release in Lua that compares the value.
func (b *bed) unset(name, value string) bool {
	b.TB.Helper()
	const script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
	unset := b.Redis.B().Eval().Script(script).Numkeys(1).Key(b.Prefix + name).Arg(value).Build()
	n, err := b.Redis.Do(b.Ctx, unset).AsInt64()
	require.NoError(b.TB, err)
	return n == 1
}

// ttl is what is left of a key's time; negative: no key, or no end.
func (b *bed) ttl(name string) time.Duration {
	b.TB.Helper()
	return time.Duration(b.number("PTTL", name)) * time.Millisecond
}

// expired blocks until the key is gone.
func (b *bed) expired(name string) {
	b.TB.Helper()
	b.Eventually("the key is gone", func() bool { return !b.Exists(name) })
}

// call runs a function of the library as any language can.
func (b *bed) call(function, name string, args ...string) []int64 {
	b.TB.Helper()
	reply := b.Redis.Do(b.Ctx, b.Redis.B().Fcall().Function(function).Numkeys(1).Key(b.Prefix+name).Arg(args...).Build())
	if n, err := reply.AsInt64(); err == nil {
		return []int64{n}
	}
	values, err := reply.ToArray()
	require.NoError(b.TB, err)
	numbers := make([]int64, len(values))
	for i := range values {
		numbers[i], _ = values[i].AsInt64()
	}
	return numbers
}

// refuses requires that the server says 'not yours' to an owner.
func (b *bed) refuses(function, name, owner string, args ...string) {
	b.TB.Helper()
	require.Zero(b.TB, b.call(function, name, append([]string{owner}, args...)...)[0])
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
