// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/internal/fcall"
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

// Who is refused because its process has the lock asks nobody. So nobody tells when that changes.
func TestARefusalOfThisProcessIsNotKept(t *testing.T) {
	c, other, name := opened(t), opened(t), t.Name()
	l, err := other.Acquire(background, name)
	require.NoError(t, err)
	busy(t, c, name)
	require.NoError(t, l.Release(background))
	b := &held{}
	b.through(c)
	l, err = c.Acquire(background, name)
	require.NoError(t, err)
	b.after = func(fcall.Call) { // between the answer and what it ends
		_, err := c.TryAcquire(background, name)
		require.ErrorIs(t, err, client.ErrBusy)
	}
	r := other.Redis()
	require.NoError(t, r.Do(background, r.B().Del().Key("lock:"+name).Build()).Error())
	require.ErrorIs(t, l.Renew(background), client.ErrTaken)
	b.after = nil
	next, err := c.TryAcquire(background, name) // while the work of the first one goes on
	require.NoError(t, err)
	require.NoError(t, next.Release(background))
	require.ErrorIs(t, l.Release(background), client.ErrTaken)
}

// What a caller does to an error is no matter of those who are refused later.
func TestARefusalIsTheCallers(t *testing.T) {
	c, other, name := opened(t), opened(t), t.Name()
	l, err := other.Acquire(background, name)
	require.NoError(t, err)
	for range 3 { // the second one is kept
		_, err := c.TryAcquire(background, name)
		var busy *client.BusyError
		require.ErrorAs(t, err, &busy)
		require.Equal(t, l.Owner(), busy.Holder.Owner)
		busy.Holder.Owner = "somebody"
	}
	require.NoError(t, l.Release(background))
}

// It does not tell of the next change then either, so the lock looks.
func TestOwnWaiterHidesNoDeletion(t *testing.T) {
	c, other, name := opened(t), opened(t), t.Name()
	known := make(chan struct{})
	once := sync.OnceFunc(func() { close(known) })
	(&held{after: func(call fcall.Call) {
		if call.Verb == fcall.Inspect {
			once()
		}
	}}).through(c)
	l, err := c.Acquire(background, name)
	require.NoError(t, err)
	<-known // to the server's tracking
	ctx, cancel := context.WithCancel(background)
	reader := line(t, c, ctx, name, 0, client.WithShared())
	defer func() { cancel(); <-reader }()
	eventually(t, "in the server's line", func() bool {
		info, err := other.Inspect(background, name)
		return err == nil && info.Waiters == 1
	})
	r := other.Redis()
	require.NoError(t, r.Do(background, r.B().Del().Key("lock:"+name).Build()).Error())
	select {
	case <-l.Context().Done():
	case <-time.After(3 * time.Second):
		t.Fatal("not noticed")
	}
}

func TestInspectCachedTellsItsAge(t *testing.T) {
	holder, c, name := opened(t), opened(t), t.Name()
	info, err := c.InspectCached(background, name)
	require.NoError(t, err)
	require.False(t, info.Held)
	require.Zero(t, info.Age)
	before := fcalls(t, address)
	info, err = c.InspectCached(background, name)
	require.NoError(t, err)
	require.Positive(t, info.Age)
	require.Equal(t, before, fcalls(t, address))

	l, err := holder.Acquire(background, name)
	require.NoError(t, err)
	eventually(t, "the change is heard of", func() bool {
		info, err = c.InspectCached(background, name)
		return err == nil && info.Held && info.Fence == l.Fence()
	})
	require.NoError(t, l.Release(background))
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
	l, err := c.Acquire(background, name)
	require.NoError(t, err)
	busy(t, c, name)
	info, err := c.InspectCached(background, name)
	require.NoError(t, err)
	require.True(t, info.Held)
	require.NoError(t, l.Release(background))
	c.Close()
	require.Equal(t, 1, strings.Count(log.String(), "no client-side caching"), log.String())
}

// Where that permission is taken away later, rueidis makes no connection, and calls say why until it is back.
func TestThePermissionForTrackingIsTakenAway(t *testing.T) {
	r, user := raw(t), "tracked"
	rules := func(rules ...string) {
		require.NoError(t, r.Do(background, r.B().AclSetuser().Username(user).Rule(rules...).Build()).Error())
	}
	rules("on", ">secret", "~*", "&*", "+@all")
	t.Cleanup(func() { _ = r.Do(background, r.B().AclDeluser().Username(user).Build()).Error() })
	c, err := client.Open(rueidis.ClientOption{InitAddress: []string{address}, Username: user, Password: "secret"}, client.Config{})
	require.NoError(t, err)
	defer c.Close()
	work := func() error { return c.Do(background, t.Name(), func(context.Context) error { return nil }) }
	require.NoError(t, work())
	rules("-client|tracking")
	require.NoError(t, r.Do(background, r.B().ClientKill().User(user).Build()).Error())
	eventually(t, "it is said", func() bool { return errors.Is(work(), client.ErrDenied) })
	require.ErrorContains(t, work(), "NOPERM")
	rules("+client|tracking")
	eventually(t, "it works again", func() bool { return work() == nil })
}

// That a server remembers too little for the Guard of one call says nothing about a call without.
func TestATryIsNotRefusedForTheGuardOfAnother(t *testing.T) {
	c := opened(t)
	for range 3 {
		_, err := c.TryAcquire(t.Context(), t.Name(), client.WithGuard(time.Hour))
		require.ErrorIs(t, err, client.ErrBusy)
	}
	lock, err := c.TryAcquire(t.Context(), t.Name())
	require.NoError(t, err)
	require.NoError(t, lock.Release(t.Context()))
}
