// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/integration/server"
)

// held is a Backend whose calls a test may hold up, before and after they are made.
type held struct {
	fcall.Backend
	before, after func(fcall.Call)
}

func (b *held) Do(ctx context.Context, call fcall.Call) (fcall.Reply, error) {
	if b.before != nil {
		b.before(call)
	}
	r, err := b.Backend.Do(ctx, call)
	if b.after != nil {
		b.after(call)
	}
	return r, err
}

func (c *held) through(to *client.Client) {
	to.Through(func(own fcall.Backend) fcall.Backend {
		c.Backend = own
		return c
	})
}

// handedOn has a waiter leave whose call has just been granted the lock, and returns what the one behind it gets.
func handedOn(t *testing.T, opts ...client.Option) (*client.Lock, error) {
	t.Helper()
	c, other, name := opened(t), opened(t), t.Name()
	l, err := other.Acquire(t.Context(), name)
	require.NoError(t, err)
	asking, ask, answer := make(chan struct{}), make(chan struct{}), make(chan struct{})
	granted := make(chan struct{})
	n := 0 // the waits are made one after the other
	b := &held{
		before: func(call fcall.Call) {
			if call.Verb == fcall.Wait {
				if n++; n == 1 {
					close(asking)
					<-ask
				}
			}
		},
		after: func(call fcall.Call) {
			if call.Verb == fcall.Wait && n == 1 {
				close(granted)
				<-answer
			}
		},
	}
	b.through(c)
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := c.Acquire(ctx, name)
		gone <- err
	}()
	<-asking
	type outcome struct {
		l   *client.Lock
		err error
	}
	got := make(chan outcome, 1)
	go func() {
		l, err := c.Acquire(t.Context(), name, append(opts, client.WithMaxWait(5*time.Second))...)
		got <- outcome{l, err}
	}()
	eventually(t, "in line", func() bool { waiting, _ := c.Line(name); return waiting == 1 })
	require.NoError(t, l.Release(t.Context()))
	close(ask)
	<-granted
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	close(answer)
	o := <-got
	return o.l, o.err
}

// Who gets what was asked for by another goroutine has it by its own terms.
func TestReaderTermsReplicas(t *testing.T) {
	_, err := handedOn(t, client.WithReplicas(1, 100*time.Millisecond))
	require.ErrorIs(t, err, client.ErrNotReplicated, "the server has no replica")
}

func TestReaderTermsMaxHold(t *testing.T) {
	l, err := handedOn(t, client.WithMaxHold(200*time.Millisecond, 0))
	require.NoError(t, err)
	select {
	case <-l.Context().Done():
	case <-time.After(2 * time.Second):
		t.Fatal("MaxHold does not end it")
	}
}

func TestReaderTermsLease(t *testing.T) {
	l, err := handedOn(t, client.WithLease(time.Second))
	require.NoError(t, err)
	require.Less(t, l.Remaining(), time.Second)
}

func TestReaderTermsWithoutRenewal(t *testing.T) {
	l, err := handedOn(t, client.WithLease(time.Second), client.WithoutRenewal())
	require.NoError(t, err)
	select {
	case <-l.Context().Done():
	case <-time.After(3 * time.Second):
		t.Fatal("the lease does not end it")
	}
}

// A token whose answer says no expires_in, so 0, is good for two seconds at least, and not for every.
func TestReaderKeepForZero(t *testing.T) {
	c, other := opened(t), opened(t)
	made := 0
	fn := func(ctx context.Context) ([]byte, error) {
		made++
		client.KeepFor(ctx, 0)
		return []byte("v"), nil
	}
	_, err := c.OnceValue(t.Context(), t.Name(), time.Hour, fn)
	require.NoError(t, err)
	info, err := other.Inspect(t.Context(), t.Name())
	require.NoError(t, err)
	require.LessOrEqual(t, info.Remaining, 3*time.Second, "%+v", info)
}

// A try that comes while the lock goes from one goroutine to the next by way of the server says who has it.
func TestReaderBusyError(t *testing.T) {
	c, name := opened(t), t.Name()
	asking, ask := make(chan struct{}), make(chan struct{})
	b := &held{}
	b.through(c)
	l, err := c.Acquire(t.Context(), name)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	next := line(t, c, ctx, name, 1, client.WithLease(time.Second))
	b.before = func(call fcall.Call) {
		if call.Verb == fcall.Wait {
			close(asking)
			<-ask
		}
	}
	go func() { _ = l.Release(t.Context()) }()
	<-asking
	_, err = c.TryAcquire(t.Context(), name)
	close(ask)
	require.ErrorIs(t, err, client.ErrBusy)
	var busy *client.BusyError
	require.ErrorAs(t, err, &busy, "%v", err)
	require.NoError(t, (<-next).Release(t.Context()))
}

// DoAll says what Do says when the client closes under its function.
func TestReaderDoAllClosed(t *testing.T) {
	do := map[string]func(c *client.Client, fn func(context.Context) error) error{
		"Do": func(c *client.Client, fn func(context.Context) error) error { return c.Do(t.Context(), t.Name(), fn) },
		"DoAll": func(c *client.Client, fn func(context.Context) error) error {
			return c.DoAll(t.Context(), []string{t.Name() + "2"}, fn)
		},
	}
	for name, do := range do {
		t.Run(name, func(t *testing.T) {
			c := opened(t)
			err := do(c, func(context.Context) error {
				c.Close()
				return nil
			})
			var lost *client.LostError
			require.ErrorAs(t, err, &lost)
			require.ErrorIs(t, err, client.ErrClosed)
		})
	}
}

// The end of a lock's context by its deadline is not the cancellation of anybody.
func TestReaderAcquireAllKind(t *testing.T) {
	c, other := opened(t), opened(t)
	l, err := other.Acquire(t.Context(), t.Name()+"b")
	require.NoError(t, err)
	defer l.Release(t.Context())
	parent, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = c.AcquireAll(t.Context(), []string{t.Name() + "a", t.Name() + "b"}, client.WithLockContext(parent))
	require.NotErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, client.ErrTimeout)
}

// Renew of a lock in its grace.
func TestReaderRenewInGrace(t *testing.T) {
	c := opened(t)
	ctx, cancel := context.WithCancel(t.Context())
	l, err := c.Acquire(ctx, t.Name(), client.WithLease(300*time.Millisecond), client.WithMaxHold(0, time.Minute))
	require.NoError(t, err)
	cancel()
	time.Sleep(400 * time.Millisecond)
	require.Positive(t, l.Remaining())
	require.NotErrorIs(t, l.Renew(t.Context()), client.ErrNotHeld)
	require.NoError(t, l.Release(t.Context()))
}

// Close ends a call whose context cannot end, at a silent server, also of a client over a rueidis client of the caller's.
func TestReaderCloseEndsACall(t *testing.T) {
	for _, way := range []string{"Open", "New"} {
		t.Run(way, func(t *testing.T) {
			d := server.Single(t, server.Owned())
			d.Load(t)
			var c *client.Client
			var err error
			if way == "Open" {
				c, err = client.Open(d.ClientOption(), client.Config{})
				require.NoError(t, err)
			} else {
				r, err := rueidis.NewClient(d.ClientOption())
				require.NoError(t, err)
				t.Cleanup(r.Close)
				c, err = client.New(r, client.Config{})
				require.NoError(t, err)
			}
			_, err = c.Inspect(t.Context(), "x")
			require.NoError(t, err)
			require.NoError(t, d.Nodes()[0].Pause())
			defer func() { _ = d.Nodes()[0].Resume() }()
			over := make(chan error, 1)
			go func() {
				_, err := c.Acquire(context.Background(), "x")
				over <- err
			}()
			time.Sleep(100 * time.Millisecond)
			began := time.Now()
			c.Close()
			t.Log("Close", time.Since(began))
			err = <-over
			t.Log(time.Since(began), err)
			require.ErrorIs(t, err, client.ErrClosed)
			require.Less(t, time.Since(began), 1500*time.Millisecond)
		})
	}
}

// A lock that is renewed by hand learns at once that its key was deleted, as any that is held for a second.
func TestReaderDeletedAfterRenew(t *testing.T) {
	for name, renew := range map[string]bool{"": false, "renewed": true} {
		t.Run(name, func(t *testing.T) {
			c, other := opened(t), opened(t)
			require.True(t, c.Tracking())
			l, err := c.Acquire(t.Context(), t.Name())
			require.NoError(t, err)
			time.Sleep(1500 * time.Millisecond)
			if renew {
				require.NoError(t, l.Renew(t.Context()))
				time.Sleep(1500 * time.Millisecond)
			}
			r := other.Redis()
			require.NoError(t, r.Do(t.Context(), r.B().Del().Key("lock:"+t.Name()).Build()).Error())
			began := time.Now()
			select {
			case <-l.Context().Done():
				t.Log(time.Since(began))
			case <-time.After(3 * time.Second):
				t.Fatal("not noticed")
			}
		})
	}
}

// So does a hold of an owner when another one was released.
func TestReaderDeletedAfterAnotherHold(t *testing.T) {
	c, other := opened(t), opened(t)
	l, err := c.Acquire(t.Context(), t.Name(), client.WithOwner("o"))
	require.NoError(t, err)
	time.Sleep(1500 * time.Millisecond)
	more, err := c.Acquire(t.Context(), t.Name(), client.WithOwner("o"))
	require.NoError(t, err)
	time.Sleep(1500 * time.Millisecond)
	require.NoError(t, more.Release(t.Context()))
	time.Sleep(1500 * time.Millisecond)
	r := other.Redis()
	require.NoError(t, r.Do(t.Context(), r.B().Del().Key("lock:"+t.Name()).Build()).Error())
	began := time.Now()
	select {
	case <-l.Context().Done():
		t.Log(time.Since(began))
	case <-time.After(3 * time.Second):
		t.Fatal("not noticed")
	}
}
