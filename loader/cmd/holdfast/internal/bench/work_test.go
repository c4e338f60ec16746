// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The clock of these tests is that of a bubble: it goes on when all wait.

var settings = Settings{Parts: []Part{RoundTrip}, For: time.Second, Grace: 5 * time.Second}

func TestTurnsUnderWayAreNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns atomic.Int64
		took := settings.work(t.Context(), RoundTrip, 3, func(ctx context.Context, worker int) error {
			time.Sleep(time.Duration(worker+1) * 3 * time.Second) // each is late, but one ends in each grace
			turns.Add(1)
			return ctx.Err()
		})
		require.Equal(t, Took{Workers: 3, Seconds: 9, Errors: []Failure{}}, took)
		require.EqualValues(t, 3, turns.Load())
	})
}

func TestTurnsWithoutAnAnswerAreCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := settings.work(t.Context(), RoundTrip, 3, func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		})
		require.Equal(t, Took{Workers: 3, Seconds: 6, Errors: []Failure{{"no_answer", 3, "context canceled"}}}, took)
	})
}

func TestAnInterruptLeavesTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, interrupt)
		var ended atomic.Int64
		took := settings.work(ctx, RoundTrip, 3, func(ctx context.Context, worker int) error {
			select {
			case <-time.After(time.Duration(worker+1) * 3 * time.Second):
				ended.Add(1)
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		require.Equal(t, 5.5, took.Seconds)
		require.EqualValues(t, 1, ended.Load())
		require.Equal(t, "no_answer", took.Errors[0].Kind)
	})
}

func TestAFailurePauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		brief := settings
		brief.For = 950 * time.Millisecond
		took := brief.work(t.Context(), RoundTrip, 3, func(context.Context, int) error { return errors.New("no") })
		require.Equal(t, []Failure{{"other", 30, "no"}}, took.Errors, "ten for each worker")
	})
}

func TestEachWorkerHasATurn(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var turns [3]atomic.Bool
	settings.work(ctx, RoundTrip, 3, func(_ context.Context, worker int) error { turns[worker].Store(true); return nil })
	for i := range turns {
		require.True(t, turns[i].Load(), i)
	}
}
