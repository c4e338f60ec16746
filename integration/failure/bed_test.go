package failure

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

const prefix = "lock:"

// bed is a deployment of the test's own with the library on it.
type bed struct{ *testbed.Bed }

func lay(tb testing.TB, d *server.Deployment) *bed {
	tb.Helper()
	d.Load(tb)
	return &bed{testbed.Lay(tb, d, prefix)}
}

func single(t *testing.T) *bed {
	t.Helper()
	t.Parallel()
	return serial(t)
}

// serial is single for a test that runs beside no other, because it measures milliseconds.
func serial(t *testing.T) *bed {
	t.Helper()
	return lay(t, server.Single(t, server.Owned()))
}

// open returns a client of its own, closed at the end of the test.
func (b *bed) open(lease time.Duration) *client.Client {
	b.TB.Helper()
	return b.Connect(b.D.ClientOption(), client.Config{Lease: lease})
}

// through returns a client of its own behind a proxy of its own.
func (b *bed) through(lease time.Duration) (*client.Client, *server.Proxy) {
	b.TB.Helper()
	return b.Through(client.Config{Lease: lease})
}

// ends is when the lease ends, by this process's clock, at most a millisecond early; the zero time
// when there is none.
func (b *bed) ends(name string) time.Time {
	b.TB.Helper()
	for {
		asked := time.Now()
		now, err := b.Redis.Do(b.Ctx, b.Redis.B().Time().Build()).AsIntSlice()
		require.NoError(b.TB, err)
		// a busy machine: no way to compare the clocks
		if time.Since(asked) > time.Millisecond && b.Ctx.Err() == nil {
			continue
		}
		until, err := b.Do(name, "HGET", "until").AsInt64()
		if rueidis.IsRedisNil(err) {
			return time.Time{}
		}
		require.NoError(b.TB, err)
		return asked.Add(time.Duration(until*1000-now[0]*1_000_000-now[1]) * time.Microsecond)
	}
}

// renewed blocks until the lease has started anew n times.
func (b *bed) renewed(name string, n int) {
	b.TB.Helper()
	last := b.ends(name)
	for range n {
		b.Eventually("a renewal", func() bool {
			now := b.ends(name)
			if now.After(last.Add(5 * time.Millisecond)) {
				last = now
				return true
			}
			return false
		})
	}
}
