// SPDX-License-Identifier: Apache-2.0

package fcall

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/stretchr/testify/require"
)

// guard makes a call about a key that answers with a token.
func guard(ctx context.Context, c *Caller, key string, call func() (int, error)) (int, error) {
	o := c.Pipe(ctx, c.Closing, []Call{{Key: key}}, func(_ context.Context, _ []Call, outcomes []Outcome) {
		n, err := call()
		outcomes[0] = Outcome{Reply{Fence: int64(n)}, err}
	})[0]
	return int(o.Fence), o.Err
}

// rueidis can hang in a connect of another call: whatever it does, a call is back when its context
// ends, or the client closes.
func TestACallReturnsWhenNobodyWants(t *testing.T) {
	own := errors.New("closed")
	for name, want := range map[string]error{"context": context.DeadlineExceeded, "closing": own} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				closing, stop := context.WithCancelCause(context.Background())
				defer stop(nil)
				c := New(Config{Closing: closing, Changed: func(string, bool) {}})
				if want == own {
					ctx, cancel = context.WithTimeout(context.Background(), time.Hour)
					defer cancel()
					time.AfterFunc(time.Second, func() { stop(own) })
				}
				hang, began := make(chan struct{}), time.Now()
				value, err := guard(ctx, c, "", func() (int, error) { <-hang; return 7, nil })
				require.Equal(t, time.Second, time.Since(began))
				require.Equal(t, want, err)
				require.Zero(t, value)
				require.Equal(t, int64(1), c.abandoned.Load())
				close(hang) // the call that was left behind ends with its answer
				synctest.Wait()
				require.Zero(t, c.abandoned.Load())
			})
		})
	}
}

func TestPipeReturnsWhatTheCallDid(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	c, own := New(quiet(nil)), errors.New("own")
	for _, ctx := range []context.Context{context.Background(), over} {
		value, err := guard(ctx, c, "", func() (int, error) { return 7, own })
		require.Equal(t, 7, value)
		require.Equal(t, own, err)
	}
	cancel()
	_, err := guard(over, c, "", func() (int, error) { t.Error("nothing is to be sent any more"); return 0, nil })
	require.Equal(t, context.Canceled, err)
}

// A call that is given up keeps a goroutine and a place in rueidis. There is an end to that.
func TestAbandonedCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, hang := New(quiet(nil)), make(chan struct{})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		for range maxAbandoned {
			go func() {
				_, _ = guard(ctx, c, "", func() (int, error) { <-hang; return 7, nil })
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for _, err := range []error{
			second(guard(t.Context(), c, "", func() (int, error) { t.Error("sent"); return 0, nil })),
			second(c.Do(t.Context(), plain(Acquire))),
			second(c.Do(context.Background(), plain(Acquire))),
			c.Send(t.Context(), []Call{plain(Acquire), plain(Renew)})[1].Err,
		} {
			require.ErrorIs(t, err, ErrUnreachable)
			require.ErrorContains(t, err, "1024 calls were given up")
			require.False(t, Unknown(err), "it was not sent")
		}
		close(hang)
		synctest.Wait()
		require.NoError(t, second(guard(t.Context(), c, "", func() (int, error) { return 7, nil })))
	})
}

// One node of a Cluster that is silent keeps nobody from the others.
func TestAbandonedCallsOfOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, hang := New(quiet(nil)), make(chan struct{})
		c.healthy = make([]atomic.Uint32, cluster.Slots)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		silent, other := "{"+cluster.TagFor(100)+"}", "{"+cluster.TagFor(8000)+"}"
		for range maxAbandoned {
			go func() {
				_, _ = guard(ctx, c, silent, func() (int, error) { <-hang; return 7, nil })
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		call := func() (int, error) { return 7, nil }
		require.ErrorIs(t, second(guard(t.Context(), c, silent, call)), ErrUnreachable)
		require.NoError(t, second(guard(t.Context(), c, other, call)))
		for slot := range uint16(1000) { // more of that node: there is an end to all of them
			c.abandon("{"+cluster.TagFor(slot)+"}", 1)
		}
		require.ErrorIs(t, second(guard(t.Context(), c, "{"+cluster.TagFor(900)+"}", call)), ErrUnreachable)
		require.NoError(t, second(guard(t.Context(), c, other, call)))
		for slot := range uint16(1000) {
			c.abandon("{"+cluster.TagFor(slot)+"}", -1)
		}
		close(hang)
		synctest.Wait()
		require.NoError(t, second(guard(t.Context(), c, silent, call)))
	})
}

func second[T any](_ T, err error) error { return err }
