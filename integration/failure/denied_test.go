package failure

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// A user's rights are taken away while it holds locks: its calls say so, its locks end with their
// leases, and their holder learns of that. When it has the rights again, so do its calls.
func TestRightsAreTakenAway(t *testing.T) {
	for name, take := range map[string][2]string{
		"one command": {"-fcall", "+fcall"}, "all commands": {"-@all", "+@all"},
		"an inner command": {"-hset", "+hset"}, "the keys": {"resetkeys", "~lock:*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := lay(t, server.Single(t, server.WithACL("user app on >secret ~lock:* &lock:* +@all")))
			option := b.D.ClientOption()
			option.Username, option.Password = "app", "secret"
			const lease = time.Second
			c := b.Connect(option, client.Config{Lease: lease, RenewEvery: lease / 5})
			l := b.Take(c, "held")
			other := b.open(testbed.Long)
			foreign := b.Take(other, "another's")
			waiting := b.Acquire(b.Ctx, c, "another's")
			b.Line(other, "another's", 1)

			b.do("ACL", "SETUSER", "app", take[0])
			_, err := c.TryAcquire(b.Ctx, "free")
			require.ErrorIs(t, err, client.ErrDenied)
			require.ErrorIs(t, l.Renew(b.Ctx), client.ErrDenied)
			cause := b.Ended(l.Context())
			require.ErrorIs(t, cause, client.ErrLost)
			b.Eventually("its lease ends on the server", func() bool { return !b.Exists("held") })
			b.Release(b.Take(other, "held"))

			b.do("ACL", "SETUSER", "app", take[1])
			b.Eventually("it locks again", func() bool {
				l, err := c.TryAcquire(b.Ctx, "held")
				return err == nil && l.Release(b.Ctx) == nil
			})
			// It was denied if it asked meanwhile; else it still is in line.
			b.Release(foreign)
			if o := testbed.Got(t, waiting); o.Err != nil {
				require.ErrorIs(t, o.Err, client.ErrDenied)
			} else {
				b.Release(o.Lock)
			}
			require.NoError(t, c.Do(b.Ctx, "another's", func(context.Context) error { return nil }))
			t.Logf("the held lock ended because of %v; the first error was %v", cause, err)
		})
	}
}
