package conformance

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// distant is a server behind a network that can be silent.
type distant struct {
	*env
	proxy *server.Proxy
}

func behind(t *testing.T) *distant {
	t.Helper()
	d := server.Single(t, server.Owned())
	d.Load(t)
	return &distant{lay(t, d), server.NewProxy(t, d.Addrs()[0])}
}

func (d *distant) option() rueidis.ClientOption {
	option := d.D.ClientOption()
	option.InitAddress = []string{d.proxy.Addr}
	return option
}

// connect returns a client on the far side of the network.
func (d *distant) connect(cfg client.Config) *client.Client {
	d.TB.Helper()
	return d.Connect(d.option(), cfg)
}

// silence makes the server silent: on the connections that stand, or on those that have to be made,
// which it accepts.
func (d *distant) silence(made bool) {
	d.proxy.Stall()
	if !made {
		d.proxy.Cut()
	}
}

const (
	deadline = 300 * time.Millisecond
	late     = time.Second // a call with that deadline is back by then, on a busy machine
)

// within calls with a deadline, requires that the call keeps it, and returns its error.
func (d *distant) within(what string, call func(ctx context.Context) error) error {
	d.TB.Helper()
	ctx, cancel := context.WithTimeout(d.Ctx, deadline)
	defer cancel()
	began := time.Now()
	err := call(ctx)
	require.Less(d.TB, time.Since(began), late, what)
	return err
}

func TestEveryCallKeepsItsDeadlineAtASilentServer(t *testing.T) {
	for name, made := range map[string]bool{"connected": true, "connecting": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := behind(t)
			c := d.connect(client.Config{Lease: testbed.Long})
			locks := make([]*client.Lock, 3)
			for i := range locks {
				locks[i] = d.Take(c, client.Name("held", i))
			}
			d.silence(made)
			// this one begins a connect, without a deadline
			go func() { _, _ = c.Inspect(d.Ctx, "a") }()
			for what, call := range map[string]func(ctx context.Context) error{
				"try":      func(ctx context.Context) error { _, err := c.TryAcquire(ctx, "a"); return err },
				"acquire":  func(ctx context.Context) error { _, err := c.Acquire(ctx, "b"); return err },
				"poll":     func(ctx context.Context) error { _, err := c.Acquire(ctx, "c", client.WithPolling(9, 1)); return err },
				"join":     func(ctx context.Context) error { _, err := c.Acquire(ctx, "d", client.WithOwner("x")); return err },
				"max wait": func(context.Context) error { _, err := c.Acquire(d.Ctx, "e", client.WithMaxWait(deadline)); return err },
				"renew":    func(ctx context.Context) error { return locks[0].Renew(ctx) },
				"release":  func(ctx context.Context) error { return locks[1].Release(ctx) },
				"inspect":  func(ctx context.Context) error { _, err := c.Inspect(ctx, "a"); return err },
				"cached":   func(ctx context.Context) error { _, err := c.InspectCached(ctx, "a"); return err },
				"break":    func(ctx context.Context) error { _, err := c.Break(ctx, "a", ""); return err },
				"version":  func(ctx context.Context) error { _, err := c.Version(ctx); return err },
			} {
				only(t, client.ErrUnreachable, d.within(what, call), what)
			}
			ctx, cancel := context.WithCancel(d.Ctx)
			cancel()
			began := time.Now()
			err := locks[2].Release(ctx)
			require.Less(t, time.Since(began), late, "a context that is over before the call")
			only(t, client.ErrUnreachable, err)
			d.proxy.Resume()
		})
	}
}

// Release and Do return with their context, and the giving back goes on without them.
func TestAnOutageDoesNotHoldUpARelease(t *testing.T) {
	d := behind(t)
	c := d.connect(client.Config{Lease: testbed.Long})
	l := d.Take(c, "released")
	d.silence(true)
	only(t, client.ErrUnreachable, d.within("release", l.Release))
	require.ErrorIs(t, d.Ended(l.Context()), client.ErrReleased)
	require.True(t, d.Exists("released"), "the server does not know")
	d.proxy.Cut() // the request is lost
	d.proxy.Resume()
	d.Eventually("it is given back", func() bool { return !d.Exists("released") })

	d.Eventually("connected again", func() bool { _, err := c.Version(d.Ctx); return err == nil })
	err := d.within("do", func(ctx context.Context) error {
		return c.Do(ctx, "done", func(context.Context) error { d.silence(true); return nil })
	})
	require.NoError(t, err, "fn's work was done under the lock")
	require.True(t, d.Exists("done"))
	d.proxy.Cut()
	d.proxy.Resume()
	d.Eventually("it is given back", func() bool { return !d.Exists("done") })
}

// A Try whose answer does not come leaves no lock with nobody.
func TestAnAcquireThatWasGivenUpIsUndone(t *testing.T) {
	d := behind(t)
	c := d.connect(client.Config{Lease: testbed.Long})
	d.proxy.DropReplies(1, "holdfast_acquire") // it runs
	_, err := c.TryAcquire(d.Ctx, "a")
	only(t, client.ErrUnreachable, err)
	require.Equal(t, 1, d.proxy.Dropped())
	d.Eventually("it is given back", func() bool { return !d.Exists("a") })
}

// dials counts the connections of a client.
func dials(option *rueidis.ClientOption) *atomic.Int64 {
	open := new(atomic.Int64)
	option.DialCtxFn = func(ctx context.Context, to string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		conn, err := d.DialContext(ctx, "tcp", to)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		return &counted{Conn: conn, open: open}, nil
	}
	return open
}

type counted struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *counted) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

func TestCloseAtASilentServer(t *testing.T) {
	for name, made := range map[string]bool{"connected": true, "connecting": false} {
		t.Run(name, func(t *testing.T) {
			d := behind(t)
			blocker := d.open(client.Config{Lease: testbed.Long})
			d.Take(blocker, "a")
			d.Line(blocker, "a", 0) // its connections stand
			ignore := goleak.IgnoreCurrent()
			option := d.option()
			open := dials(&option)
			c, err := client.Open(option, d.Configured(client.Config{Lease: testbed.Long}))
			require.NoError(t, err)
			held, kept := d.Take(c, "held"), d.Take(c, "kept")
			ended := make(chan time.Time, 1)
			context.AfterFunc(kept.Context(), func() { ended <- time.Now() })
			first := d.Acquire(d.Ctx, c, "a")
			d.Line(blocker, "a", 1)
			second := d.Acquire(d.Ctx, c, "a")
			d.silence(made)
			third := d.Acquire(d.Ctx, c, "new")
			trying := make(chan error, 1)
			go func() { _, err := c.TryAcquire(d.Ctx, "try"); trying <- err }()
			releasing := make(chan error, 1)
			go func() { releasing <- held.Release(d.Ctx) }()
			require.ErrorIs(t, d.Ended(held.Context()), client.ErrReleased)
			began := time.Now()
			c.Close()
			require.Less(t, time.Since(began), 1500*time.Millisecond, "about a second")
			require.Error(t, kept.Context().Err())
			only(t, client.ErrClosed, context.Cause(kept.Context()))
			at := testbed.Got(t, ended).Sub(began)
			t.Logf("the lock's context ended %v after the call", at)
			require.Less(t, at, 300*time.Millisecond, "at once")
			for _, waiting := range []<-chan testbed.Outcome{first, second, third} {
				only(t, client.ErrClosed, testbed.Got(t, waiting).Err)
			}
			tried := client.ErrClosed
			err = testbed.Got(t, trying)
			if !made && errors.Is(err, client.ErrUnreachable) { // it crossed with the end of its connection
				tried = client.ErrUnreachable
			}
			only(t, tried, err)
			require.Error(t, testbed.Got(t, releasing))
			d.proxy.Cut()
			d.proxy.Resume()
			require.NoError(t, goleak.Find(ignore))
			require.Zero(t, open.Load(), "connections are left")
		})
	}
}

// In an outage no news is no good news: a refusal from memory is believed for a second.
func TestARefusalFromMemoryIsOfABoundedAge(t *testing.T) {
	d := behind(t)
	c, holder := d.connect(client.Config{}), d.open(client.Config{Lease: testbed.Long})
	d.Take(holder, "a")
	try := func() error {
		ctx, cancel := context.WithTimeout(d.Ctx, 100*time.Millisecond)
		defer cancel()
		_, err := c.TryAcquire(ctx, "a")
		return err
	}
	for range 3 {
		only(t, client.ErrBusy, try())
	}
	before := d.calls()
	only(t, client.ErrBusy, try())
	require.Equal(t, before, d.calls(), "from memory")
	d.silence(true)
	began := time.Now()
	err := try()
	for ; errors.Is(err, client.ErrBusy); err = try() {
		require.Less(t, time.Since(began), 3*time.Second, "still busy")
	}
	only(t, client.ErrUnreachable, err)
	d.proxy.Resume()
}
