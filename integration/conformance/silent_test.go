// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// distant is a server behind a network that can be silent.
type distant struct {
	*env
	proxy    *server.Proxy
	deadline time.Duration // of each call
}

func behind(t *testing.T) *distant {
	t.Helper()
	e := own(t)
	return &distant{e, server.NewProxy(t, e.D.Addrs()[0]), deadline}
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
	deadline = 2 * time.Second
	late     = 15 * time.Second // a call with a deadline is back by then, on a busy machine
)

// within calls with a deadline, requires that the call keeps it, and returns its error.
func (d *distant) within(what string, call func(ctx context.Context) error) error {
	d.TB.Helper()
	ctx, cancel := context.WithTimeout(d.Ctx, d.deadline)
	defer cancel()
	began := time.Now()
	err := call(ctx)
	require.Less(d.TB, time.Since(began), late, what)
	return err
}

// Release and Do return with their context, and the giving back goes on without them.
func TestAnOutageDoesNotHoldUpARelease(t *testing.T) {
	d := behind(t)
	c := d.connect(client.Config{Lease: testbed.Long})
	l, late := d.Take(c, "released"), d.Take(c, "released late")
	d.silence(true)
	ended, cancel := context.WithCancel(d.Ctx)
	cancel()
	only(t, client.ErrUnreachable, d.within("a context that is over before the call", func(context.Context) error {
		return late.Release(ended)
	}))
	only(t, client.ErrUnreachable, d.within("release", l.Release))
	require.ErrorIs(t, d.Ended(l.Context()), client.ErrReleased)
	require.True(t, d.Exists("released"), "the server does not know")
	d.proxy.Cut() // the request is lost
	d.proxy.Resume()
	d.Eventually("they are given back", func() bool { return !d.Exists("released") && !d.Exists("released late") })

	d.Eventually("connected again", func() bool { _, err := c.Inspect(d.Ctx, "any"); return err == nil })
	err := d.within("do", func(ctx context.Context) error {
		return c.Do(ctx, "done", func(context.Context) error { d.silence(true); return nil })
	})
	require.NoError(t, err, "fn's work was done under the lock")
	require.True(t, d.Exists("done"))
	d.proxy.Cut()
	d.proxy.Resume()
	d.Eventually("it is given back", func() bool { return !d.Exists("done") })
}

// Close ends every call, and the context of every lock, in about a second, also where the server says nothing.
// It leaves no goroutine and no connection.
func TestCloseEndsEverything(t *testing.T) {
	for name, way := range map[string]struct{ open, silent, made bool }{
		"opened": {open: true}, "over the caller's own": {},
		"silent": {open: true, silent: true, made: true}, "silent to new connections": {open: true, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := behind(t)
			blocker := d.open(client.Config{Lease: testbed.Long})
			b := d.Take(blocker, "a")
			d.Line(blocker, "a", 0) // its connections stand
			known := leaks.Now()
			option, cfg := d.option(), d.Configured(client.Config{Lease: testbed.Long})
			var open leaks.Conns
			option.DialCtxFn = open.Counting(func(ctx context.Context, to string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return d.DialContext(ctx, "tcp", to)
			})
			redis, err := rueidis.NewClient(option)
			require.NoError(t, err)
			c, err := client.New(redis, cfg)
			if way.open {
				redis.Close()
				c, err = client.Open(option, cfg)
			}
			require.NoError(t, err)
			held, kept := d.Take(c, "held"), d.Take(c, "kept")
			waiting := []<-chan testbed.Outcome{d.Acquire(d.Ctx, c, "a")}
			d.Line(blocker, "a", 1)
			waiting = append(waiting, d.Acquire(d.Ctx, c, "a"), // behind the first, inside the process
				d.Acquire(d.Ctx, c, "a", client.WithPolling(1000, time.Minute)))
			trying, releasing := make(chan error, 1), make(chan error, 1)
			if way.silent {
				d.silence(way.made)
				waiting = append(waiting, d.Acquire(d.Ctx, c, "new"))
				go func() { _, err := c.TryAcquire(d.Ctx, "try"); trying <- err }()
				go func() { releasing <- held.Release(d.Ctx) }()
				require.ErrorIs(t, d.Ended(held.Context()), client.ErrReleased)
			}
			ended := make(chan time.Time, 1)
			context.AfterFunc(kept.Context(), func() { ended <- time.Now() })
			began := time.Now()
			c.Close()
			require.Less(t, time.Since(began), 5*time.Second, "about a second, on an idle machine")
			require.Less(t, testbed.Got(t, ended).Sub(began), 5*time.Second, "at once")
			only(t, client.ErrClosed, context.Cause(kept.Context()))
			begun := func(err error) { // of a call that may have crossed with the end of its connection
				want := client.ErrClosed
				if !way.made && errors.Is(err, client.ErrUnreachable) {
					want = client.ErrUnreachable
				}
				only(t, want, err)
			}
			for _, w := range waiting[:2] {
				only(t, client.ErrClosed, testbed.Got(t, w).Err)
			}
			for _, w := range waiting[2:] {
				begun(testbed.Got(t, w).Err)
			}
			if way.silent {
				begun(testbed.Got(t, trying))
				require.Error(t, testbed.Got(t, releasing))
				d.proxy.Cut()
				d.proxy.Resume()
			} else {
				require.True(t, d.Exists("kept"), "it is not released: work may be going on under it")
				d.Line(blocker, "a", 0)
			}
			c.Close()
			require.Error(t, kept.Release(d.Ctx))
			d.Release(b)
			if !way.open {
				require.NoError(t, redis.Do(d.Ctx, redis.B().Ping().Build()).Error(), "it stays the caller's")
				redis.Close()
			}
			require.NoError(t, leaks.Find(known))
			require.Zero(t, open.Open(), "connections are left")
		})
	}
}
