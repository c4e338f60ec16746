// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// brisk are settings of clients that renew often.
var brisk = client.Config{Lease: 5 * time.Second, RenewEvery: 200 * time.Millisecond}

// connecting returns a func that makes clients by the option and the settings.
func (b *bed) connecting(option rueidis.ClientOption, cfg client.Config) func() *client.Client {
	return func() *client.Client { return b.Connect(option, cfg) }
}

// onEach runs a test on a server of its own of every flavour.
func onEach(t *testing.T, test func(t *testing.T, b *bed), opts ...server.Option) {
	t.Helper()
	t.Parallel()
	server.Each(t, func(t *testing.T, f server.Flavour) {
		test(t, lay(t, server.Single(t, append(opts, server.Owned(), server.WithFlavour(f))...)))
	})
}

// The library is upgraded and downgraded under load: no call fails, and nothing is lost.
func TestTheLibraryIsReplacedUnderLoad(t *testing.T) {
	onEach(t, func(t *testing.T, b *bed) {
		w := b.crew(b.connecting(b.D.ClientOption(), brisk))
		other := strings.Replace(functions.Source, "'"+functions.Version+"'", "'0.0.1'", 1)
		require.NotEqual(t, functions.Source, other)
		for replaced := range 200 {
			b.do("FUNCTION", "LOAD", "REPLACE", [...]string{other, functions.Source}[replaced%2])
			if replaced == 100 { // a line goes on meanwhile
				require.NoError(t, w.release("lined 0"))
			}
		}
		assert.Zero(t, w.check(t, 0, nil).lost)
	})
}

// A server has as many clients as it takes. A new one is ErrUnreachable; that the error says why is
// not seen, because rueidis drops the server's words when the connection ends behind them. Those that
// are connected go on: they take locks, hold them and wait.
func TestMaxClients(t *testing.T) {
	onEach(t, func(t *testing.T, b *bed) {
		w := b.crew(b.connecting(b.D.ClientOption(), brisk))
		b.do("CONFIG", "SET", "maxclients", "1")
		for range 20 {
			_, err := client.Open(b.D.ClientOption(), client.Config{})
			require.ErrorIs(t, err, client.ErrUnreachable)
		}
		began := time.Now()
		b.Eventually("longer than a lease", func() bool { return time.Since(began) > brisk.Lease+time.Second })
		assert.Zero(t, w.check(t, 0, nil).lost)
		b.Eventually("it takes more again", func() bool { // this client has not made all of its connections either
			return b.Redis.Do(b.Ctx, b.Redis.B().Arbitrary("CONFIG", "SET", "maxclients", "1000").Build()).Error() == nil
		})
		b.Release(b.Take(b.open(time.Minute), "a"))
	})
}

// A password is rotated: both are good for a while, then the old one and its connections go. Clients
// that ask for the password when they connect lose nothing. One that has the old one is told so.
func TestAPasswordIsRotated(t *testing.T) {
	onEach(t, func(t *testing.T, b *bed) {
		var password atomic.Value
		password.Store("old")
		option := b.D.ClientOption()
		option.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			return rueidis.AuthCredentials{Username: "app", Password: password.Load().(string)}, nil
		}
		w := b.crew(b.connecting(option, brisk))
		fixed := b.D.ClientOption()
		fixed.Username, fixed.Password = "app", "old"
		forgetful := b.Connect(fixed, brisk)
		l := b.Take(forgetful, "forgotten")

		b.do("ACL", "SETUSER", "app", ">new")
		password.Store("new")
		b.do("CLIENT", "KILL", "USER", "app") // as an operator does who wants to see that it works
		b.Renewals("held 0", 3)
		b.do("ACL", "SETUSER", "app", "<old")
		b.do("CLIENT", "KILL", "USER", "app")
		b.Eventually("told why", func() bool { // the first call may find that its connection has gone
			_, err := forgetful.TryAcquire(b.Ctx, "a")
			require.Error(t, err)
			return errors.Is(err, client.ErrDenied)
		})
		require.ErrorIs(t, b.Ended(l.Context()), client.ErrLost)
		b.Renewals("held 0", 3)
		w.check(t, 4, client.ErrUnreachable) // one call of each client for each time
	}, server.WithACL("user app on >old ~lock:* &lock:* +@all"))
}

// A name in the DNS moves to the replica, which becomes the primary: as where a service runs the
// servers. The old primary is dead, or is a replica, which hangs up on its clients or on nobody. Clients
// follow the name. What was replicated is still held.
func TestANameMoves(t *testing.T) {
	demote := func(b *bed, old, primary *server.Node) {
		host, port, err := net.SplitHostPort(primary.Addr)
		require.NoError(b.TB, err)
		_, err = old.Do(b.Ctx, "REPLICAOF", host, port)
		require.NoError(b.TB, err)
	}
	for name, lose := range map[string]func(b *bed, old, primary *server.Node){
		"dead":                            func(b *bed, old, _ *server.Node) { require.NoError(b.TB, old.Kill()) },
		"demoted, and hangs up on nobody": demote,
		"demoted": func(b *bed, old, primary *server.Node) {
			demote(b, old, primary)
			for _, kind := range []string{"normal", "pubsub"} {
				_, err := old.Do(b.Ctx, "CLIENT", "KILL", "TYPE", kind)
				require.NoError(b.TB, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := lay(t, server.Replicated(t, 1, server.Owned()))
			old, primary := b.D.Nodes()[0], b.D.Nodes()[1]
			var addr atomic.Value
			addr.Store(old.Addr)
			option := b.D.ClientOption()
			option.InitAddress = []string{"redis.example:6379"}
			option.DialCtxFn = func(ctx context.Context, name string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
				assert.Equal(t, "redis.example:6379", name)
				return d.DialContext(ctx, "tcp", addr.Load().(string))
			}
			w := b.crew(b.connecting(option, brisk))
			w.end() // no new locks while it moves, or some can be lost
			b.replicated(old, primary)
			_, err := primary.Do(b.Ctx, "REPLICAOF", "NO", "ONE")
			require.NoError(t, err)
			addr.Store(primary.Addr)
			moved := time.Now()
			lose(b, old, primary)
			for _, l := range w.held {
				b.Eventually("it is renewed at the new primary", func() bool { return l.Renew(b.Ctx) == nil })
			}
			t.Logf("all locks were renewed %v after the move", time.Since(moved))
			w.check(t, 0, nil)
		})
	}
}

// A server that is busy with somebody's script refuses everything, SUNSUBSCRIBE too, which ends the
// process of a client of rueidis that sends it. Waits, releases and Close get through that.
func TestAServerThatIsBusyWithAScript(t *testing.T) {
	b := single(t)
	_, err := b.D.Nodes()[0].Do(b.Ctx, "CONFIG", "SET", "busy-reply-threshold", "20")
	require.NoError(t, err)
	c := b.Connect(b.D.ClientOption(), client.Config{Lease: testbed.Long})
	l := b.Take(c, "held")
	blocker := b.Take(b.open(testbed.Long), "waited for")
	closes := b.Connect(b.D.ClientOption(), client.Config{Lease: testbed.Long})
	b.Acquire(b.Ctx, closes, "waited for")
	b.Line(c, "waited for", 1)
	ctx, cancel := context.WithCancel(b.Ctx)
	waiting := b.Acquire(ctx, c, "waited for")
	b.Line(c, "waited for", 2)

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = b.D.Nodes()[0].Do(b.Ctx, "EVAL", `local t = redis.call('TIME')
while redis.call('TIME')[1] - t[1] < 2 do end`, "0") // its end is all that matters
	}()
	b.Eventually("the server is busy", func() bool {
		_, err := c.Inspect(b.Ctx, "held")
		return err != nil
	})
	_, err = c.TryAcquire(b.Ctx, "another")
	require.ErrorIs(t, err, client.ErrUnreachable)
	closes.Close()
	cancel()
	require.Error(t, testbed.Got(t, waiting).Err)
	soon, stop := context.WithTimeout(b.Ctx, 100*time.Millisecond)
	defer stop()
	require.ErrorIs(t, l.Release(soon), client.ErrUnreachable)
	testbed.Got(t, ended)
	b.Eventually("what was given up is given back", func() bool { return !b.Exists("held") })
	b.Release(blocker) // it goes to nobody that is gone
	b.Release(b.Locked(b.Acquire(b.Ctx, c, "waited for")).Lock)
	c.Close()
}
