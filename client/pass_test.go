// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
)

// masked is a context that ends at the same instant as another, and does not carry its lock.
type masked struct{ context.Context }

func (m masked) Value(key any) any {
	if strings.HasPrefix(fmt.Sprintf("%T", key), "client.") {
		return nil
	}
	return m.Context.Value(key)
}

// A Lock is never given to a goroutine whose wait ends with the very release that would give it.
func TestAReleaseEndsItsContextBeforeItPassesTheLockOn(t *testing.T) {
	c, name := opened(t), t.Name()
	for i := range 1000 {
		first, err := c.Acquire(background, name)
		require.NoError(t, err)
		type outcome struct {
			lock *client.Lock
			err  error
		}
		second := make(chan outcome, 1)
		go func() {
			l, err := c.Acquire(masked{first.Context()}, name)
			second <- outcome{l, err}
		}()
		for {
			if waiting, _ := c.Line(name); waiting == 1 {
				break
			}
			runtime.Gosched()
		}
		require.NoError(t, first.Release(background))
		o := <-second
		if o.err == nil {
			t.Fatalf("round %d: a Lock whose context has ended: %v", i, context.Cause(o.lock.Context()))
		}
		require.ErrorIs(t, o.err, context.Canceled)
	}
}

// looks is a context that looks at the locks when it is asked for its Err, as that of a Lock does.
type looks struct {
	context.Context
	look func()
}

func (l looks) Err() error {
	l.look()
	return l.Context.Err()
}

// A caller's context is not asked under a mutex: that of a Lock may end other locks then.
func TestContextsAreAskedUnderNoMutex(t *testing.T) {
	d := server.Single(t, server.Owned())
	c, err := client.Open(d.ClientOption(), client.Config{AutoLoad: true})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	ends := func(ctx context.Context, cancel context.CancelFunc, acquire func(context.Context, string, ...client.Option) (*client.Lock, error)) {
		t.Helper()
		over := make(chan error, 1)
		go func() {
			_, err := acquire(looks{ctx, func() { c.Line("x") }}, "x")
			over <- err
		}()
		time.AfterFunc(50*time.Millisecond, cancel)
		select {
		case err := <-over:
			require.ErrorIs(t, err, context.Canceled)
		case <-time.After(20 * time.Second):
			t.Fatal("it does not return")
		}
	}
	l, err := c.Acquire(t.Context(), "x")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ends(ctx, cancel, c.Acquire)
	require.NoError(t, l.Release(t.Context()))
	require.NoError(t, d.Nodes()[0].Pause())
	ctx, cancel = context.WithCancel(t.Context())
	ends(ctx, cancel, c.TryAcquire)
	require.NoError(t, d.Nodes()[0].Resume())
}

// Goroutines that differ only in how they wait pass the lock to each other.
func TestHowOneWaitsDoesNotMatterToThePassing(t *testing.T) {
	c, name := opened(t), t.Name()
	ways := [][]client.Option{
		nil, {client.WithMaxWait(time.Minute)}, {client.WithGiveUpEarly(), client.WithMaxWait(time.Hour)}, {client.WithMaxWait(2 * time.Minute)},
	}
	const goroutines, rounds = 16, 300
	var wg sync.WaitGroup
	var last int64 // guarded by the lock
	before := fcalls(t, address)
	for g := range goroutines {
		wg.Go(func() {
			for range rounds {
				l, err := c.Acquire(background, name, ways[g%len(ways)]...)
				if err != nil {
					t.Error(err)
					return
				}
				if l.Fence() <= last {
					t.Errorf("token %d after %d", l.Fence(), last)
				}
				last = l.Fence()
				if err := l.Release(background); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Less(t, fcalls(t, address)-before, goroutines*rounds/2, "most of the time the lock does not leave the process")
}
