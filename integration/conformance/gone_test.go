// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// ways are in which a server can be gone, slow, full, refusing or wrong, and the kind of the errors
// that follow.
var ways = []struct {
	name  string
	do    func(d *distant)
	kind  error
	which error // the more precise one, if any
	fine  string
}{
	{"killed", func(d *distant) { _ = d.D.Nodes()[0].Kill() }, client.ErrUnreachable, nil, ""},
	{"silent", func(d *distant) { d.silence(true) }, client.ErrUnreachable, nil, ""},
	{"silent to new connections", func(d *distant) { d.silence(false) }, client.ErrUnreachable, nil, ""},
	{"hanging up", func(d *distant) { d.proxy.DropReplies(1_000_000, "") }, client.ErrUnreachable, nil, ""},
	{"a replica", func(d *distant) { d.admin("REPLICAOF", "127.0.0.1", "1") }, client.ErrUnreachable, nil, "inspect cached"},
	{"full", func(d *distant) { d.admin("CONFIG", "SET", "maxmemory", "1") }, client.ErrUnreachable, nil,
		"renew renewFor release releaseOwner break inspect cached"},
	{"unsaved", func(d *distant) {
		d.admin("CONFIG", "SET", "save", "1 1")
		d.admin("CONFIG", "SET", "min-replicas-to-write", "3")
	}, client.ErrUnreachable, nil, "inspect cached"},
	{"without the library", func(d *distant) { d.admin("FUNCTION", "FLUSH") }, client.ErrInvalid, client.ErrLibrary, ""},
	{"of another library", func(d *distant) {
		d.admin("FUNCTION", "FLUSH")
		var code strings.Builder
		code.WriteString("#!lua name=other\n")
		for _, name := range []string{"acquire", "acquire_reentrant", "renew", "release", "wait", "leave", "break", "inspect", "version"} {
			code.WriteString("redis.register_function('holdfast_" + name + "', function() return {2, 'surprise'} end)\n")
		}
		d.admin("FUNCTION", "LOAD", code.String())
	}, client.ErrInvalid, client.ErrLibrary, ""},
	{"forbidding", func(d *distant) { d.admin("ACL", "SETUSER", "default", "-fcall") }, client.ErrInvalid, client.ErrDenied, ""},
	{"forbidding the keys", func(d *distant) { d.admin("ACL", "SETUSER", "default", "resetkeys", "~other:*") }, client.ErrInvalid, client.ErrDenied, ""},
	{"with other data", func(d *distant) {
		for _, name := range []string{"free", "renew", "release", "owned"} {
			d.admin("RPUSH", d.Prefix+"list", "x") // at once: a holder that finds no key has lost the lock
			d.admin("RENAME", d.Prefix+"list", d.Prefix+name)
		}
	}, client.ErrInvalid, client.ErrNotALock, ""},
}

// calls are all that a client can be asked. 'free' is a lock that nobody has, 'held' one that
// another has, the others are ours.
func calls(c *client.Client, renew, release *client.Lock, most time.Duration) map[string]func(ctx context.Context) error {
	lock := func(_ *client.Lock, err error) error { return err }
	info := func(_ client.Info, err error) error { return err }
	return map[string]func(ctx context.Context) error{
		"try":     func(ctx context.Context) error { return lock(c.TryAcquire(ctx, "free")) },
		"fresh":   func(ctx context.Context) error { return lock(c.TryAcquire(ctx, "free", client.WithFreshAnswer())) },
		"acquire": func(ctx context.Context) error { return lock(c.Acquire(ctx, "free")) },
		"maxWait": func(ctx context.Context) error { return lock(c.Acquire(ctx, "free", client.WithMaxWait(most))) },
		"polling": func(ctx context.Context) error {
			return lock(c.Acquire(ctx, "free", client.WithPolling(3, time.Millisecond)))
		},
		"giveUpEarly":  func(ctx context.Context) error { return lock(c.Acquire(ctx, "free", client.WithGiveUpEarly())) },
		"join":         func(ctx context.Context) error { return lock(c.Acquire(ctx, "free", client.WithOwner("x"))) },
		"do":           func(ctx context.Context) error { return c.Do(ctx, "free", func(context.Context) error { return nil }) },
		"renew":        renew.Renew,
		"renewFor":     func(ctx context.Context) error { return renew.RenewFor(ctx, 2*testbed.Long) },
		"release":      release.Release,
		"releaseOwner": func(ctx context.Context) error { return c.ReleaseOwner(ctx, "owned", "job") },
		"inspect":      func(ctx context.Context) error { return info(c.Inspect(ctx, "free")) },
		"cached":       func(ctx context.Context) error { return info(c.InspectCached(ctx, "free")) },
		"break":        func(ctx context.Context) error { return info(c.Break(ctx, "free", "")) },
	}
}

// Every error is of exactly one kind, and an outage is never 'held by another', whatever the server
// does and the call is.
func TestEveryErrorIsOfOneKind(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			d := behind(t)
			c := d.connect(client.Config{Lease: testbed.Long, NoRenewal: true})
			if way.which != nil || way.fine != "" { // it answers, if late
				d.deadline = late / 2
			}
			all := calls(c, d.Take(c, "renew"), d.Take(c, "release"), d.deadline)
			d.Take(c, "owned", client.WithOwner("job"))
			way.do(d)
			defer d.proxy.Resume()
			go func() { _, _ = c.Inspect(d.Ctx, "free") }() // it begins a connect without a deadline, which others share
			for what, call := range all {
				err := d.within(what, call)
				if err == nil {
					require.Contains(t, strings.Fields(way.fine), what, "it succeeds")
					continue
				}
				if way.name != "a replica" { // which is hung up on: a call that crosses with that fails
					require.NotContains(t, strings.Fields(way.fine), what, "%v", err)
				}
				only(t, way.kind, err, what)
				if way.which != nil {
					require.ErrorIs(t, err, way.which, what)
				}
				require.Contains(t, err.Error(), "\"", "the lock's name")
			}
		})
	}
}

func TestTheCallersOwnEndIsOfItsKind(t *testing.T) {
	e := own(t)
	c := e.open(client.Config{Lease: testbed.Long})
	all := calls(c, e.Take(c, "renew"), e.Take(c, "release"), deadline)
	delete(all, "release") // it goes on when its context is over
	canceled, cancel := context.WithCancel(e.Ctx)
	cancel()
	over, cancel := context.WithDeadline(e.Ctx, time.Now().Add(-time.Second))
	defer cancel()
	for what, call := range all {
		only(t, context.Canceled, call(canceled), what)
		err := call(over)
		only(t, client.ErrTimeout, err, what)
		require.ErrorIs(t, err, context.DeadlineExceeded, what)
	}
	c.Close()
	for what, call := range all {
		err := call(e.Ctx)
		if what == "renew" || what == "renewFor" {
			only(t, client.ErrClosed, err, what)
			require.ErrorAs(t, err, new(*client.LostError))
			continue
		}
		only(t, client.ErrClosed, err, what)
	}
}

// What a full server takes is enough to be handed a lock that is not renewed.
func TestAHandOffAtAFullServer(t *testing.T) {
	e := own(t)
	holder, c := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
	l := e.Take(holder, "a")
	waiting := e.Acquire(e.Ctx, c, "a", client.WithoutRenewal())
	e.Eventually("a waiter that can be notified", func() bool { // who polls is refused
		fields, _ := e.Do("a", "HVALS").AsStrSlice()
		return strings.Contains(strings.Join(fields, ""), "inbox:")
	})
	e.admin("CONFIG", "SET", "maxmemory", "1")
	e.Release(l)
	l = e.Locked(waiting).Lock
	require.Greater(t, l.Remaining(), testbed.Long/2, "confirmed, for a whole lease")
	e.Release(l)
}
