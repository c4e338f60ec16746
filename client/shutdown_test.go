// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
)

func TestShutdown(t *testing.T) {
	d := server.Single(t, server.Owned())
	open := func(t *testing.T) *client.Client {
		c, err := client.Open(d.ClientOption(), client.Config{AutoLoad: true, Lease: time.Minute})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	}
	errOwn := errors.New("of the function")
	// run is a way to hold a lock under a function, and returns what that returned.
	ways := map[string]func(c *client.Client, ctx context.Context, fn func(context.Context) error) error{
		"Do": func(c *client.Client, ctx context.Context, fn func(context.Context) error) error {
			return c.Do(ctx, "Do", fn)
		},
		"Lead": func(c *client.Client, ctx context.Context, fn func(context.Context) error) error {
			return c.Lead(ctx, "Lead", fn)
		},
		"Once": func(c *client.Client, ctx context.Context, fn func(context.Context) error) error {
			_, err := c.Once(ctx, "Once", time.Minute, fn)
			return err
		},
		"DoAll": func(c *client.Client, ctx context.Context, fn func(context.Context) error) error {
			return c.DoAll(ctx, []string{"DoAll", "DoAll2"}, fn)
		},
	}
	for name, way := range ways {
		t.Run(name+" ends with its function, and the next has the lock then", func(t *testing.T) {
			old, next := open(t), open(t)
			began, work, returned := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			go func() {
				returned <- way(old, t.Context(), func(ctx context.Context) error {
					close(began)
					<-ctx.Done()
					if cause := context.Cause(ctx); !errors.Is(cause, client.ErrShutdown) || !errors.Is(cause, client.ErrClosed) || errors.Is(cause, client.ErrLost) {
						return cause
					}
					<-work
					return errOwn
				})
			}()
			<-began
			down := make(chan error, 1)
			go func() { down <- old.Shutdown(t.Context()) }()
			eventually(t, "shutting down", func() bool {
				lock, err := old.TryAcquire(t.Context(), "another")
				if err == nil { // the Shutdown has not begun, and would wait for it
					require.NoError(t, lock.Release(t.Context()))
				}
				return errors.Is(err, client.ErrShutdown)
			})
			_, err := next.TryAcquire(t.Context(), name)
			require.ErrorIs(t, err, client.ErrBusy, "the function runs")
			require.Empty(t, down)
			close(work)
			require.Equal(t, errOwn, <-returned)
			require.NoError(t, <-down)
			if name != "Once" { // its interval goes on
				lock, err := next.TryAcquire(t.Context(), name)
				require.NoError(t, err)
				require.NoError(t, lock.Release(t.Context()))
			}
		})
	}
	t.Run("what still works at the end is left to its lease", func(t *testing.T) {
		old, other := open(t), open(t)
		lock, err := old.Acquire(t.Context(), "works")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err = old.Shutdown(ctx)
		require.ErrorIs(t, err, client.ErrTimeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `left to their leases: ["works"], 1 in all`)
		info, err := other.Inspect(t.Context(), "works")
		require.NoError(t, err)
		require.Equal(t, lock.Fence(), info.Fence, "not given back")
		require.ErrorIs(t, lock.Release(t.Context()), client.ErrClosed)
		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		require.NoError(t, old.Shutdown(ctx), "nothing is held")
	})
	t.Run("two at once both say that nothing is held", func(t *testing.T) {
		for range 20 {
			old := open(t)
			lock, err := old.Acquire(t.Context(), "twice")
			require.NoError(t, err)
			ended := make(chan error, 2)
			for range cap(ended) {
				go func() { ended <- old.Shutdown(t.Context()) }()
			}
			<-lock.Context().Done()
			require.NoError(t, lock.Release(t.Context()))
			require.NoError(t, <-ended)
			require.NoError(t, <-ended)
		}
	})
}

// Who waits for a value of its own process hears of Shutdown at once, also while the server is silent to the
// release of who made it.
func TestWhoWaitsForAValueHearsOfShutdown(t *testing.T) {
	d := server.Single(t, server.Owned())
	c, err := client.Open(d.ClientOption(), client.Config{AutoLoad: true})
	require.NoError(t, err)
	defer c.Close()
	defer func() { require.NoError(t, d.Nodes()[0].Resume()) }()
	made, waited, down := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	joined, silent := make(chan struct{}), make(chan struct{})
	go func() {
		_, err := c.OnceValue(t.Context(), "a", time.Hour, func(context.Context) ([]byte, error) {
			go func() {
				close(joined)
				_, err := c.OnceValue(t.Context(), "a", time.Hour, nil)
				waited <- err
			}()
			<-joined
			defer close(silent)
			return []byte("made"), d.Nodes()[0].Pause()
		})
		made <- err
	}()
	<-silent
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	go func() { down <- c.Shutdown(ctx) }()
	select {
	case err := <-waited:
		require.ErrorIs(t, err, client.ErrShutdown)
	case <-down:
		require.Fail(t, "it waits for the release")
	}
	require.Error(t, <-down)
	<-made
}
