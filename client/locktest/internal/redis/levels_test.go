// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

const (
	lease      = 30 * time.Second
	renewEvery = lease / 3
	guard      = 40 * time.Second
)

// level is a column of docs/guarantees.md.
type level struct {
	name string
	cfg  client.Config
}

var levels = []level{
	{"default", client.Config{Lease: lease}},
	{"guard", client.Config{Lease: lease, Guard: guard}},
	{"replicas", client.Config{Lease: lease, Replicas: 1}},
}

// atEveryLevel runs a test of every case at every level.
func atEveryLevel[C any](t *testing.T, cases map[string]C, test func(t *testing.T, w *redis.World, lv level, c C)) {
	for _, lv := range levels {
		t.Run(lv.name, func(t *testing.T) {
			bed.Each(t, cases, func(t *testing.T, w *redis.World, c C) { test(t, w, lv, c) })
		})
	}
}

// fault is a row of docs/guarantees.md, of those that a single server can play.
type fault struct {
	strike, heal func(t *testing.T, n *redis.Node) // it strikes several times
	lasts        time.Duration
	autoLoad     bool
	try, renew   error // of calls meanwhile; nil: they are served
	maybe        bool  // or they are served
	waits        error // what a waiter may get; nil: it stays in line
	lost         bool  // held locks end with their leases
	young        bool  // the server's memory begins anew with each strike
}

// refusing is a server in a condition for most of a lease.
func refusing(c redis.Condition) fault {
	set := func(on bool) func(*testing.T, *redis.Node) {
		return func(_ *testing.T, n *redis.Node) { n.Set(c, on) }
	}
	return fault{strike: set(true), heal: set(false), lasts: lease * 9 / 10,
		try: client.ErrUnreachable, renew: client.ErrUnreachable}
}

func faults() map[string]fault {
	full := refusing(redis.Full)
	full.renew = nil
	replace := func(t *testing.T, n *redis.Node) { bed.Load(t, n) }
	flush := func(_ *testing.T, n *redis.Node) { n.Do("FUNCTION", "FLUSH") }
	poor := func(_ *testing.T, n *redis.Node) {
		n.Refuse(func(cmd []string) redis.Error {
			if cmd[0] == "FCALL" {
				return "NOPERM this user has no permissions to run the 'fcall' command"
			}
			return ""
		})
	}
	rich := func(_ *testing.T, n *redis.Node) { n.Refuse(nil) }
	kill := func(_ *testing.T, n *redis.Node) { n.KillClients() }
	none := func(*testing.T, *redis.Node) {}
	return map[string]fault{
		"the memory is full":       full,
		"it is busy with a script": refusing(redis.Busy),
		"it is loading":            refusing(redis.Loading),
		"it could not save":        refusing(redis.SaveFailed),
		"it has too few replicas":  refusing(redis.TooFewReplicas),
		"rights are taken away": {strike: poor, heal: rich, lasts: 3 * lease / 2,
			try: client.ErrDenied, renew: client.ErrDenied, waits: client.ErrDenied, lost: true},
		"connections are killed": {strike: kill, heal: none, lasts: lease,
			try: client.ErrUnreachable, renew: client.ErrUnreachable, maybe: true, waits: client.ErrUnreachable},
		"the library is replaced": {strike: replace, heal: none, lasts: lease, young: true},
		"FUNCTION FLUSH": {strike: flush, heal: replace, lasts: lease / 2,
			try: client.ErrLibrary, renew: client.ErrLibrary, waits: client.ErrLibrary, young: true},
		"FUNCTION FLUSH with AutoLoad": {strike: flush, heal: none, lasts: lease, autoLoad: true,
			young: true},
	}
}

// A server is struck under a lock that others wait for, and recovers.
func TestFaultsOfAServerAtEveryLevel(t *testing.T) {
	atEveryLevel(t, faults(), func(t *testing.T, w *redis.World, lv level, f fault) { f.happens(t, w, lv) })
}

func (f fault) happens(t *testing.T, w *redis.World, lv level) {
	n := oldPrimary(t, w)
	lv.cfg.AutoLoad = f.autoLoad
	var clients []*client.Client
	for _, host := range []string{"holder", "first", "second"} {
		c := onServer(t, w, host, n.Addr(), lv.cfg)
		clients = append(clients, c)
	}
	c := clients[0]
	l, released := bed.Must(c.Acquire(ctx, "x")), bed.Must(c.Acquire(ctx, "released"))
	bed.Must(c.Acquire(ctx, "broken"))
	first := bed.Waits(t, clients[1], "x", f.waits)
	time.Sleep(500 * time.Millisecond)
	second := bed.Waits(t, clients[2], "x", f.waits)
	time.Sleep(500 * time.Millisecond)
	pauses := f.young && lv.cfg.Guard > 0

	const times = 9
	var struck time.Time
	for i := range times {
		struck = time.Now()
		f.strike(t, n)
		free := client.Name("free", i)
		if pauses && f.try == nil {
			require.LessOrEqual(t, nobodyYet(t, c, free), guard)
		} else if m, err := c.TryAcquire(ctx, free); f.answers(t, f.try, err) {
			require.NoError(t, m.Release(ctx))
		}
		if !f.lost || i == 0 {
			f.answers(t, f.renew, l.Renew(ctx))
		}
		if i == 0 && f.renew == nil { // so do releasing and breaking
			require.NoError(t, released.Release(ctx))
			require.True(t, bed.Must(c.Break(ctx, "broken", "a test")).Held)
			require.Equal(t, "0", n.Hash("lock:broken")["until"])
		}
		time.Sleep(f.lasts / times)
	}
	require.Empty(t, first, "the lock is held, or nobody gets it")
	f.heal(t, n)
	healed := time.Now()
	if f.young && f.try != nil { // the memory begins now
		struck = healed
	}
	if f.lost {
		require.ErrorIs(t, context.Cause(l.Context()), client.ErrLost)
	} else {
		time.Sleep(time.Second) // connected again
		require.NoError(t, l.Renew(ctx))
		require.NoError(t, l.Release(ctx))
	}
	fence := l.Fence()
	for _, waiter := range f.order(first, second) {
		m := <-waiter
		require.NotNil(t, m)
		require.Greater(t, m.Fence(), fence)
		fence = m.Fence()
		if pauses {
			require.GreaterOrEqual(t, time.Since(struck), guard)
			require.Less(t, time.Since(struck), guard+3*time.Second)
		} else {
			require.Less(t, time.Since(healed), 3*time.Second)
		}
		require.NoError(t, m.Release(ctx))
	}
	require.NoError(t, bed.Must(c.TryAcquire(ctx, "free")).Release(ctx))
}

// order is that of the line, if it is kept.
func (f fault) order(first, second <-chan *client.Lock) []<-chan *client.Lock {
	if f.waits == nil {
		return []<-chan *client.Lock{first, second}
	}
	either := make(chan *client.Lock)
	for _, w := range []<-chan *client.Lock{first, second} {
		go func() { either <- <-w }()
	}
	return []<-chan *client.Lock{either, either}
}

// answers reports whether a call was served, and it must be served as the fault says.
func (f fault) answers(t *testing.T, want, err error) bool {
	t.Helper()
	switch {
	case want == nil:
		require.NoError(t, err)
	case err != nil || !f.maybe:
		require.ErrorIs(t, err, want)
	}
	return err == nil
}

// old loads the library, and waits until the servers' memory is older than the guard.
func old(t *testing.T, nodes ...*redis.Node) {
	t.Helper()
	bed.Load(t, nodes...)
	for _, n := range nodes {
		n.Do("FCALL", functions.Memory, "0")
	}
	time.Sleep(guard)
}

// oldPrimary starts a server that is old, and a replica of it.
func oldPrimary(t *testing.T, w *redis.World) *redis.Node {
	t.Helper()
	n := w.Node("a:1")
	w.Replica("b:1", n)
	old(t, n)
	return n
}

// nobodyYet asserts that nobody gets a free lock, and returns for how long.
func nobodyYet(t *testing.T, c *client.Client, name string) time.Duration {
	t.Helper()
	_, err := c.TryAcquire(ctx, name, client.WithFreshAnswer())
	var busy *client.BusyError
	require.ErrorAs(t, err, &busy)
	require.Empty(t, busy.Holder.Owner)
	require.ErrorContains(t, err, "nobody gets it yet")
	require.Positive(t, busy.Remaining)
	return busy.Remaining
}
