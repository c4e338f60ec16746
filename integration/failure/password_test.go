package failure

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
)

// A password is rotated: both are good for a while, then the old one and its connections go. Clients
// that ask for the password when they connect lose nothing. One that has the old one is told so.
func TestAPasswordIsRotated(t *testing.T) {
	t.Parallel()
	server.Each(t, func(t *testing.T, f server.Flavour) {
		b := lay(t, server.Single(t, server.WithFlavour(f), server.WithACL("user app on >old ~lock:* &lock:* +@all")))
		var password atomic.Value
		password.Store("old")
		option := b.D.ClientOption()
		option.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			return rueidis.AuthCredentials{Username: "app", Password: password.Load().(string)}, nil
		}
		w := b.crew(option, client.Config{Lease: 3 * time.Second, RenewEvery: 200 * time.Millisecond})
		fixed := b.D.ClientOption()
		fixed.Username, fixed.Password = "app", "old"
		forgetful := b.Connect(fixed, client.Config{Lease: 3 * time.Second, RenewEvery: 200 * time.Millisecond})
		l := b.Take(forgetful, "forgotten")

		b.do("ACL", "SETUSER", "app", ">new")
		password.Store("new")
		b.do("CLIENT", "KILL", "USER", "app") // as an operator does who wants to see that it works
		b.renewed("held 0", 3)
		b.do("ACL", "SETUSER", "app", "<old")
		b.do("CLIENT", "KILL", "USER", "app")
		b.Eventually("told why", func() bool { // the first call may find that its connection has gone
			_, err := forgetful.TryAcquire(b.Ctx, "a")
			require.Error(t, err)
			return errors.Is(err, client.ErrDenied)
		})
		require.ErrorIs(t, b.Ended(l.Context()), client.ErrLost)
		b.renewed("held 0", 3)
		w.load.end()
		t.Logf("%d locks taken and given back, %d calls failed", w.load.turns.Load(), len(w.load.failed))
		for _, err := range w.load.failed {
			assert.ErrorIs(t, err, client.ErrUnreachable)
		}
		assert.LessOrEqual(t, len(w.load.failed), 4, "one call of each client for each time")
		w.check(t)
	})
}
