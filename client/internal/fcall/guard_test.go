package fcall

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// rueidis can hang in a connect of another call: whatever it does, a call is back when its context
// ends.
func TestACallReturnsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		hang := make(chan struct{})
		began := time.Now()
		value, err := guard(ctx, context.Background(), func(context.Context) (int, error) { <-hang; return 7, nil })
		require.Equal(t, 300*time.Millisecond, time.Since(began))
		require.Equal(t, context.DeadlineExceeded, err)
		require.Zero(t, value)
		close(hang) // the call that was left behind ends with its answer
		synctest.Wait()
	})
}

func TestGuardReturnsWhatTheCallDid(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	own := errors.New("own")
	for _, ctx := range []context.Context{context.Background(), over} {
		value, err := guard(ctx, context.Background(), func(context.Context) (int, error) { return 7, own })
		require.Equal(t, 7, value)
		require.Equal(t, own, err)
	}
	cancel()
	_, err := guard(over, context.Background(), func(context.Context) (int, error) { t.Error("nothing is to be sent any more"); return 0, nil })
	require.Equal(t, context.Canceled, err)
}

func TestACallReturnsWhenTheClientCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		closing, stop := context.WithCancelCause(context.Background())
		own := errors.New("closed")
		time.AfterFunc(time.Second, func() { stop(own) })
		hang, began := make(chan struct{}), time.Now()
		_, err := guard(ctx, closing, func(context.Context) (int, error) { <-hang; return 7, nil })
		require.Equal(t, own, err)
		require.Equal(t, time.Second, time.Since(began))
		close(hang)
		synctest.Wait()
	})
}
