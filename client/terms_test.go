// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

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

// Send is for calls that go as one pipeline: a wait behind a release, once the subscription is known.
func (b *held) Send(ctx context.Context, calls []fcall.Call) []fcall.Outcome {
	if b.before != nil {
		for _, c := range calls {
			b.before(c)
		}
	}
	outcomes := b.Backend.Send(ctx, calls)
	if b.after != nil {
		for _, c := range calls {
			b.after(c)
		}
	}
	return outcomes
}

func (b *held) through(to *client.Client) {
	to.Through(func(own fcall.Backend) fcall.Backend {
		b.Backend = own
		return b
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
func TestWhoIsServedHasItsOwnTerms(t *testing.T) {
	t.Run("replicas", func(t *testing.T) {
		_, err := handedOn(t, client.WithReplicas(1, 100*time.Millisecond))
		require.ErrorIs(t, err, client.ErrNotReplicated, "the server has no replica")
	})
	t.Run("lease", func(t *testing.T) {
		l, err := handedOn(t, client.WithLease(time.Second))
		require.NoError(t, err)
		require.Less(t, l.Remaining(), time.Second)
	})
	for what, opts := range map[string][]client.Option{"MaxHold": {client.WithMaxHold(200*time.Millisecond, 0)},
		"the lease": {client.WithLease(time.Second), client.WithoutRenewal()}} {
		t.Run(what, func(t *testing.T) {
			l, err := handedOn(t, opts...)
			require.NoError(t, err)
			select {
			case <-l.Context().Done():
			case <-time.After(10 * time.Second):
				t.Fatalf("%s does not end it", what)
			}
		})
	}
}

// piped is a Backend that notes whether a release was sent with a call that waits for replicas.
type piped struct {
	fcall.Backend
	waits atomic.Bool
}

func (b *piped) Send(ctx context.Context, calls []fcall.Call) []fcall.Outcome {
	if last := calls[len(calls)-1]; calls[0].Verb == fcall.Release && last.Replicas > 0 {
		b.waits.Store(true)
	}
	return b.Backend.Send(ctx, calls)
}

// A release waits for no replica, also if a goroutine stands behind it that wants the lock on one.
func TestAReleaseWaitsForNoReplica(t *testing.T) {
	d := server.Replicated(t, 1)
	open := func(cfg client.Config) *client.Client {
		cfg.AutoLoad = true
		c, err := client.Open(d.ClientOption(), cfg)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	}
	c, other, b := open(client.Config{Replicas: 1}), open(client.Config{}), &piped{}
	c.Through(func(own fcall.Backend) fcall.Backend { b.Backend = own; return b })
	theirs, err := other.Acquire(t.Context(), "theirs")
	require.NoError(t, err)
	ours := make(chan *client.Lock)
	go func() { l, _ := c.Acquire(t.Context(), "theirs"); ours <- l }()
	eventually(t, "in line", func() bool { i, err := other.Inspect(t.Context(), "theirs"); return err == nil && i.Waiters == 1 })
	require.NoError(t, theirs.Release(t.Context()))
	require.NoError(t, (<-ours).Release(t.Context())) // it is subscribed now
	l, err := c.Acquire(t.Context(), "x")
	require.NoError(t, err)
	got := line(t, c, t.Context(), "x", 1)
	require.NoError(t, l.Release(t.Context()))
	require.NoError(t, (<-got).Release(t.Context()))
	require.False(t, b.waits.Load())
}

func TestNameKeepsPartsApart(t *testing.T) {
	require.Equal(t, "order:42", client.Name("order", 42))
	for _, part := range []any{new(int64), func() {}, make(chan int), unsafe.Pointer(new(int64))} {
		require.Empty(t, client.Name("order", part), "its text is an address: %T", part)
	}
	require.NotEqual(t, client.Name("a:b", "c"), client.Name("a", "b:c"))
	require.NotEqual(t, client.Name("a%3Ab"), client.Name("a:b"))
}
