package client_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func raw(t *testing.T) rueidis.Client {
	r, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}})
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// busy asks until the answer comes from memory.
func busy(t *testing.T, c *client.Client, name string) {
	t.Helper()
	for range 3 {
		_, err := c.TryAcquire(background, name)
		require.ErrorIs(t, err, client.ErrBusy)
	}
}

func TestTryOnAHeldLockCostsNoCommand(t *testing.T) {
	holder, c, name := opened(t), opened(t), t.Name()
	l, err := holder.Acquire(background, name, client.WithLabel("boss"))
	require.NoError(t, err)
	busy(t, c, name)
	before := fcalls(t)
	var last time.Duration
	for range 1000 {
		_, err := c.TryAcquire(background, name)
		var held *client.BusyError
		require.ErrorAs(t, err, &held)
		require.Equal(t, "boss", held.Holder.Label)
		require.Positive(t, held.Remaining)
		require.LessOrEqual(t, held.Remaining, 30*time.Second+time.Millisecond, "the server ends it with the millisecond that is over first")
		last = held.Remaining
	}
	require.Equal(t, before, fcalls(t))
	require.Less(t, last, 30*time.Second, "the remaining lease runs down in memory too")

	require.NoError(t, l.Release(background))
	eventually(t, "the release is heard of", func() bool {
		l, err := c.TryAcquire(background, name)
		return err == nil && l.Release(background) == nil
	})
}

// The server does not tell a client of its own writes: it must know.
func TestOwnReleaseIsKnownAtOnce(t *testing.T) {
	c, name := opened(t), t.Name()
	for range 50 {
		l, err := c.Acquire(background, name)
		require.NoError(t, err)
		busy(t, c, name)
		require.NoError(t, l.Release(background))
		l, err = c.TryAcquire(background, name)
		require.NoError(t, err)
		require.NoError(t, l.Release(background))
	}
}

func TestABusyAnswerIsNotBelievedBeyondTheLease(t *testing.T) {
	holder, c, name := opened(t), opened(t), t.Name()
	_, err := holder.Acquire(background, name, client.WithLease(400*time.Millisecond), client.WithoutRenewal())
	require.NoError(t, err)
	busy(t, c, name)
	eventually(t, "free after the lease", func() bool {
		l, err := c.TryAcquire(background, name)
		return err == nil && l.Release(background) == nil
	})
}

func TestInspectCachedTellsItsAge(t *testing.T) {
	holder, c, name := opened(t), opened(t), t.Name()
	info, err := c.InspectCached(background, name)
	require.NoError(t, err)
	require.False(t, info.Held)
	require.Zero(t, info.Age)
	before := fcalls(t)
	info, err = c.InspectCached(background, name)
	require.NoError(t, err)
	require.Positive(t, info.Age)
	require.Equal(t, before, fcalls(t))

	l, err := holder.Acquire(background, name)
	require.NoError(t, err)
	eventually(t, "the change is heard of", func() bool {
		info, err = c.InspectCached(background, name)
		return err == nil && info.Held && info.Fence == l.Fence()
	})
	require.NoError(t, l.Release(background))
}

// renewedOnce returns a lock that has been renewed: from then on its holder hears of changes.
func renewedOnce(t *testing.T, c *client.Client, name string) *client.Lock {
	t.Helper()
	l, err := c.Acquire(background, name, client.WithLease(30*time.Second), client.WithRenewal(50*time.Millisecond))
	require.NoError(t, err)
	r := raw(t)
	until := func() string {
		until, err := r.Do(background, r.B().Hget().Key("lock:"+name).Field("until").Build()).ToString()
		require.NoError(t, err)
		return until
	}
	first := until()
	eventually(t, "renewed", func() bool { return until() != first })
	return l
}

func TestADeletedKeyIsNewsAtOnce(t *testing.T) {
	before, c, name := opened(t), opened(t), t.Name()
	first, err := before.Acquire(background, name)
	require.NoError(t, err)
	got := make(chan *client.Lock, 1)
	go func() {
		l, _ := c.Acquire(background, name, client.WithLease(time.Minute))
		got <- l
	}()
	eventually(t, "in line", func() bool { info, err := before.Inspect(background, name); return err == nil && info.Waiters == 1 })
	require.NoError(t, first.Release(background))
	l := <-got
	require.NotNil(t, l)
	eventually(t, "confirmed by a first renewal, the next is due in 20 s", func() bool { return l.Remaining() > 30*time.Second })
	r := raw(t)
	require.NoError(t, r.Do(background, r.B().Del().Key("lock:"+name).Build()).Error())
	eventually(t, "the context has ended", func() bool { return l.Context().Err() != nil })
	require.ErrorIs(t, context.Cause(l.Context()), client.ErrTaken)
}

func TestABreakIsToldWithItsReason(t *testing.T) {
	c, operator, name := opened(t), opened(t), t.Name()
	l := renewedOnce(t, c, name)
	_, err := operator.Break(background, name, "runaway")
	require.NoError(t, err)
	<-l.Context().Done()
	var lost *client.LostError
	require.ErrorAs(t, context.Cause(l.Context()), &lost)
	require.ErrorIs(t, lost, client.ErrBroken, "and not only that it is gone, which the renewals notice at the same time")
	require.True(t, strings.HasSuffix(lost.Reason, ": runaway"), lost.Reason)
}

// Where the server does not permit tracking everything works without, and the log says so once.
func TestWithoutPermissionForTracking(t *testing.T) {
	r := raw(t)
	name := t.Name()
	user := "untracked"
	require.NoError(t, r.Do(background, r.B().AclSetuser().Username(user).Rule("on", ">secret", "~*", "&*", "+@all", "-client|tracking").Build()).Error())
	t.Cleanup(func() { _ = r.Do(background, r.B().AclDeluser().Username(user).Build()).Error() })
	var log bytes.Buffer
	c, err := client.Open(rueidis.ClientOption{InitAddress: []string{address}, Username: user, Password: "secret"},
		client.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer c.Close()
	require.False(t, c.Tracking())
	require.Equal(t, 1, strings.Count(log.String(), "no client-side caching"), log.String())
	l, err := c.Acquire(background, name)
	require.NoError(t, err)
	busy(t, c, name)
	info, err := c.InspectCached(background, name)
	require.NoError(t, err)
	require.True(t, info.Held)
	require.NoError(t, l.Release(background))
}
