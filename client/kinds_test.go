// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/integration/server"
)

// A try that comes while the lock goes from one goroutine to the next by way of the server says who has it.
func TestATryBesideAHandOverSaysWhoHasIt(t *testing.T) {
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

// Do and DoAll say that the lock was lost, beside what the function says, which got context.Canceled for that.
func TestALossIsSaidBesideTheFunctionsError(t *testing.T) {
	do := map[string]func(c *client.Client, name string, fn func(context.Context) error) error{
		"Do": func(c *client.Client, name string, fn func(context.Context) error) error {
			return c.Do(t.Context(), name, fn)
		},
		"DoAll": func(c *client.Client, name string, fn func(context.Context) error) error {
			return c.DoAll(t.Context(), []string{name}, fn)
		},
	}
	for name, do := range do {
		t.Run(name, func(t *testing.T) {
			own := errors.New("own")
			require.Equal(t, own, do(opened(t), t.Name(), func(context.Context) error { return own }), "untouched")
			for i, of := range []func(context.Context) error{
				func(context.Context) error { return nil },
				func(ctx context.Context) error { return fmt.Errorf("%w: %w", own, ctx.Err()) },
			} {
				c := opened(t)
				var said error
				err := do(c, fmt.Sprint(t.Name(), i), func(ctx context.Context) error { // Close leaves it to its lease
					c.Close()
					<-ctx.Done()
					said = of(ctx)
					return said
				})
				var lost *client.LostError
				require.ErrorAs(t, err, &lost)
				require.ErrorIs(t, err, client.ErrClosed)
				if said != nil {
					require.ErrorIs(t, err, said)
					require.ErrorIs(t, err, context.Canceled)
				}
			}
		})
	}
}

// Of two locks that are lost both are said, the outer one too.
func TestALossOfEachLockIsSaid(t *testing.T) {
	c, name := opened(t), t.Name()
	err := c.Do(t.Context(), name+"a", func(ctx context.Context) error {
		return c.Do(ctx, name+"b", func(context.Context) error {
			for _, last := range []string{"b", "a"} {
				_, err := c.Break(t.Context(), name+last, "enough")
				require.NoError(t, err)
			}
			return nil
		})
	})
	require.ErrorContains(t, err, `"`+name+`a": lock lost`)
	require.ErrorContains(t, err, `"`+name+`b": lock lost`)
}

// Lead says that the lead was lost too, if its context is over: nobody else will.
func TestALeadThatIsLostAtItsEnd(t *testing.T) {
	c, own := opened(t), errors.New("own")
	ctx, cancel := context.WithCancel(t.Context())
	err := c.Lead(ctx, t.Name(), func(context.Context) error {
		cancel()
		_, err := c.Break(t.Context(), t.Name(), "enough")
		require.NoError(t, err)
		return own
	})
	require.ErrorIs(t, err, own)
	require.ErrorIs(t, err, client.ErrBroken)

	gone, other := opened(t), opened(t)
	err = gone.Lead(t.Context(), t.Name(), func(work context.Context) error {
		go func() { _ = gone.Shutdown(context.Background()) }()
		<-work.Done()
		_, err := other.Break(t.Context(), t.Name(), "enough")
		require.NoError(t, err)
		return own
	})
	require.ErrorIs(t, err, own, "nor when the client goes")
	require.ErrorIs(t, err, client.ErrBroken)

	ctx, cancel = context.WithCancel(t.Context())
	err = c.Lead(ctx, t.Name(), func(work context.Context) error {
		<-work.Done()
		cancel()
		return nil
	}, client.WithMaxHold(10*time.Millisecond, 0))
	require.ErrorIs(t, err, context.Canceled, "the end of a term is no loss")
	require.NotErrorIs(t, err, client.ErrLost)
}

// A lock that is lost while its client goes is lost, whatever the function, or another lock, says.
func TestALossWhileTheClientGoes(t *testing.T) {
	t.Run("shutdown", func(t *testing.T) {
		c, other := opened(t), opened(t)
		err := c.Do(t.Context(), t.Name(), func(ctx context.Context) error {
			go func() { _ = c.Shutdown(context.Background()) }()
			<-ctx.Done()
			_, err := other.Break(t.Context(), t.Name(), "enough")
			require.NoError(t, err)
			return context.Cause(ctx)
		})
		require.ErrorIs(t, err, client.ErrShutdown)
		require.ErrorIs(t, err, client.ErrLost)
	})
	t.Run("close", func(t *testing.T) {
		c := opened(t)
		err := c.DoAll(t.Context(), []string{t.Name() + "a", t.Name() + "b"}, func(ctx context.Context) error {
			_, err := c.Break(t.Context(), t.Name()+"b", "enough")
			require.NoError(t, err)
			<-ctx.Done()
			c.Close()
			return nil
		})
		require.ErrorIs(t, err, client.ErrLost)
	})
}

// A wait ends with the context that the lock would have. Its deadline is not the cancellation of anybody.
func TestAllUnderALockContextThatEnds(t *testing.T) {
	c, other := opened(t), opened(t)
	l, err := other.Acquire(t.Context(), t.Name()+"b")
	require.NoError(t, err)
	defer l.Release(t.Context())
	call, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, names := range [][]string{{t.Name() + "b"}, {t.Name() + "a", t.Name() + "b"}} {
		parent, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = c.AcquireAll(call, names, client.WithLockContext(parent))
		require.NotErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, client.ErrTimeout)
		require.NoError(t, call.Err())
	}
}

// Close ends a call whose context cannot end, at a silent server, also of a client over a rueidis client of the
// caller's.
func TestCloseEndsACallWithoutAnEnd(t *testing.T) {
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
			over, asked := make(chan error, 1), make(chan struct{})
			once := sync.OnceFunc(func() { close(asked) })
			(&held{before: func(fcall.Call) { once() }}).through(c)
			go func() {
				_, err := c.Acquire(context.Background(), "x")
				over <- err
			}()
			<-asked
			began := time.Now()
			c.Close()
			require.ErrorIs(t, <-over, client.ErrClosed)
			require.Less(t, time.Since(began), 5*time.Second, "rueidis waits for ten")
		})
	}
}

func TestAnAbsurdLimitIsNoSharedLock(t *testing.T) {
	c := opened(t)
	for _, n := range []int{math.MinInt, math.MinInt32, -5, 0, 1001, math.MaxInt} {
		_, err := c.TryAcquire(t.Context(), t.Name(), client.WithLimit(n))
		require.ErrorIs(t, err, client.ErrArgument, n)
		require.ErrorContains(t, err, fmt.Sprintf("not %d", n))
	}
}

func TestPollingSaysThatTheLineIsFull(t *testing.T) {
	c := opened(t)
	for range 128 {
		_, err := c.TryAcquire(t.Context(), t.Name(), client.WithOwner("we"))
		require.NoError(t, err)
	}
	_, err := c.Acquire(t.Context(), t.Name(), client.WithOwner("we"), client.WithPolling(2, time.Millisecond))
	require.ErrorIs(t, err, client.ErrLineFull)
	require.NoError(t, c.ReleaseOwner(t.Context(), t.Name(), "we"))
}
