// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

var background = context.Background()

func opened(t *testing.T) *client.Client {
	c := open()
	t.Cleanup(c.Close)
	return c
}

// fcalls is how many function calls the server has run.
func fcalls(t *testing.T, address string) int {
	r, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}})
	require.NoError(t, err)
	defer r.Close()
	info, err := r.Do(background, r.B().Info().Section("commandstats").Build()).ToString()
	require.NoError(t, err)
	found := regexp.MustCompile(`cmdstat_fcall:calls=(\d+)`).FindStringSubmatch(info)
	require.Len(t, found, 2)
	n, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return n
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, time.Millisecond, what)
}

// line starts a waiter for name and returns when n of this process stand in memory for it.
func line(t *testing.T, c *client.Client, ctx context.Context, name string, n int, opts ...client.Option) <-chan *client.Lock {
	t.Helper()
	got := make(chan *client.Lock, 1)
	go func() {
		l, err := c.Acquire(ctx, name, opts...)
		if err == nil {
			got <- l
		}
		close(got)
	}()
	eventually(t, "in line", func() bool { waiting, _ := c.Line(name); return waiting == n })
	return got
}

// First come, first served: also with mixed ways to wait.
func TestGoroutinesGetTheLockInOrderWithHigherTokens(t *testing.T) {
	c, name := opened(t), t.Name()
	first, err := c.Acquire(background, name)
	require.NoError(t, err)
	var waiters []<-chan *client.Lock
	for i := range 20 {
		waiters = append(waiters, line(t, c, background, name, i+1, client.WithMaxWait(time.Duration(i%3)*time.Minute)))
	}
	before, last := fcalls(t, address), first
	for i, w := range waiters {
		require.NoError(t, last.Release(background))
		require.ErrorIs(t, context.Cause(last.Context()), client.ErrReleased)
		l := <-w
		require.NotNil(t, l, "waiter %d", i)
		for _, later := range waiters[i+1:] {
			require.Empty(t, later)
		}
		require.Greater(t, l.Fence(), last.Fence())
		require.NoError(t, l.Context().Err())
		require.Positive(t, l.Remaining())
		require.ErrorIs(t, last.Release(background), client.ErrNotHeld)
		last = l
	}
	info, err := c.Inspect(background, name)
	require.NoError(t, err)
	require.Equal(t, last.Fence(), info.Fence, "Inspect shows the token of who has it now")
	require.NoError(t, last.Release(background))
	_, led := c.Line(name)
	require.False(t, led, "nothing is kept of a lock that nobody wants")
	// The first lock was taken without a run of tokens, so the second asked Redis; then it depends
	// on the time slice.
	require.Less(t, fcalls(t, address)-before, 2*len(waiters)+2)
}

// While another process waits, this one keeps the lock for a bounded run only.
func TestOtherProcessesGetTheirTurn(t *testing.T) {
	busy, other, name := opened(t), opened(t), t.Name()
	ctx, stop := context.WithCancel(background)
	var wg sync.WaitGroup
	// guarded by the lock: an owner string is one turn in the server's line
	owner, run, longest := "", 0, 0
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if l, err := busy.Acquire(ctx, name); err == nil {
					if l.Owner() != owner {
						owner, run = l.Owner(), 0
					}
					run++
					longest = max(longest, run)
					_ = l.Release(background)
				}
			}
		})
	}
	eventually(t, "busy", func() bool { waiting, _ := busy.Line(name); return waiting > 2 })
	for range 20 {
		l, err := other.Acquire(background, name)
		require.NoError(t, err)
		require.LessOrEqual(t, longest, client.PassRun)
		require.NoError(t, l.Release(background))
	}
	stop()
	wg.Wait()
}

func TestOneWhoStopsWaitingIsPassedOver(t *testing.T) {
	c, name := opened(t), t.Name()
	holder, err := c.Acquire(background, name)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(background)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Acquire(ctx, name)
		failed <- err
	}()
	eventually(t, "in line", func() bool { waiting, _ := c.Line(name); return waiting == 1 })
	next := line(t, c, background, name, 2)
	cancel()
	err = <-failed
	require.ErrorIs(t, err, context.Canceled)
	var stopped *client.WaitError
	require.ErrorAs(t, err, &stopped)
	require.Equal(t, holder.Owner(), stopped.Last.Holder.Owner, "it says who has the lock")
	require.NotErrorIs(t, err, client.ErrBusy)
	require.NotErrorIs(t, err, client.ErrTimeout)
	require.NoError(t, holder.Release(background))
	require.NoError(t, (<-next).Release(background))
}

// The place in the server's line belongs to the process: when its leader gives up, the next
// goroutine takes it over.
func TestAPlaceInLineIsTakenOver(t *testing.T) {
	holder, ours, theirs, name := opened(t), opened(t), opened(t), t.Name()
	held, err := holder.Acquire(background, name)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(background)
	failed := make(chan error, 1)
	go func() {
		_, err := ours.Acquire(ctx, name)
		failed <- err
	}()
	waiters := func(n int) func() bool {
		return func() bool { info, err := holder.Inspect(background, name); return err == nil && info.Waiters == n }
	}
	eventually(t, "first in line", waiters(1))
	second := line(t, ours, background, name, 1)
	after := make(chan *client.Lock, 1)
	go func() {
		l, _ := theirs.Acquire(background, name)
		after <- l
	}()
	eventually(t, "second in line", waiters(2))
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	eventually(t, "nobody waits in memory", func() bool { waiting, _ := ours.Line(name); return waiting == 0 })
	require.NoError(t, held.Release(background))
	l := <-second
	select {
	case <-after:
		t.Fatal("the other process came first")
	default:
	}
	require.NoError(t, l.Release(background))
	require.NoError(t, (<-after).Release(background))
}

func TestTheLineGoesOnWhenTheHolderLosesTheLock(t *testing.T) {
	c, operator, name := opened(t), opened(t), t.Name()
	holder, err := c.Acquire(background, name)
	require.NoError(t, err)
	next := line(t, c, background, name, 1)
	_, err = operator.Break(background, name, "test")
	require.NoError(t, err)
	require.Error(t, holder.Renew(background))
	require.ErrorIs(t, context.Cause(holder.Context()), client.ErrBroken)
	l := <-next // without a Release of the first
	require.NotNil(t, l)
	require.Greater(t, l.Fence(), holder.Fence())
	require.ErrorIs(t, holder.Release(background), client.ErrLost)
	require.NoError(t, l.Context().Err(), "the late release is not this lock's")
	require.NoError(t, l.Release(background))
}

// What operators see must be true, so a lock is not passed on to one who goes by another label or
// other limits.
func TestALabelIsNotInherited(t *testing.T) {
	c, name := opened(t), t.Name()
	holder, err := c.Acquire(background, name, client.WithLabel("one"))
	require.NoError(t, err)
	next := line(t, c, background, name, 1, client.WithLabel("two"))
	require.NoError(t, holder.Release(background))
	l := <-next
	info, err := c.Inspect(background, name)
	require.NoError(t, err)
	require.Equal(t, "two", info.Holder.Label)
	require.Equal(t, l.Owner(), info.Holder.Owner)
	require.NoError(t, l.Release(background))
}

func TestOneOfTwoReleasesAtOnceSaysNotHeld(t *testing.T) {
	c, name := opened(t), t.Name()
	for range 20 {
		l, err := c.Acquire(background, name)
		require.NoError(t, err)
		errs := make(chan error, 2)
		for range 2 {
			go func() { errs <- l.Release(background) }()
		}
		first, second := <-errs, <-errs
		require.True(t, (first == nil) != (second == nil), "%v, %v", first, second)
		require.ErrorIs(t, errors.Join(first, second), client.ErrNotHeld)
	}
}

// An acquisition that a ReleaseOwner of the same client gave back asks again: its caller has lost nothing.
func TestAnAcquisitionThatAReleaseOwnerCrossesAsksAgain(t *testing.T) {
	c := opened(t)
	for range 300 {
		var both sync.WaitGroup
		both.Go(func() {
			if err := c.ReleaseOwner(background, t.Name(), "job"); err != nil {
				require.ErrorIs(t, err, client.ErrNotHeld)
			}
		})
		var l *client.Lock
		var err error
		both.Go(func() { l, err = c.TryAcquire(background, t.Name(), client.WithOwner("job")) })
		both.Wait()
		require.NoError(t, err)
		if err := l.Release(background); !errors.Is(err, client.ErrLost) {
			require.NoError(t, err)
		}
	}
}

// A call under a context that is over is refused, also one that would re-enter.
func TestNobodyReentersUnderAContextThatIsOver(t *testing.T) {
	c := opened(t)
	l, err := c.Acquire(background, t.Name())
	require.NoError(t, err)
	canceled, cancel := context.WithCancel(l.Context())
	cancel()
	late, cancel := context.WithDeadline(l.Context(), time.Now())
	defer cancel()
	for ctx, want := range map[context.Context]error{canceled: context.Canceled, late: client.ErrTimeout} {
		_, err = c.TryAcquire(ctx, t.Name())
		require.ErrorIs(t, err, want)
		_, err = c.Acquire(ctx, t.Name())
		require.ErrorIs(t, err, want)
	}
	require.NoError(t, l.Release(background))
}
