package failure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/wallclock"
)

// eachStep runs a test on a server whose clock can be stepped, for each of some steps, or skips it and says why.
func eachStep(t *testing.T, test func(t *testing.T, b *bed, by time.Duration)) {
	t.Helper()
	library, err := wallclock.Build()
	if err != nil {
		t.Skip(err)
	}
	t.Parallel()
	server.Each(t, func(t *testing.T, f server.Flavour) {
		for _, by := range []time.Duration{10 * time.Second, time.Hour} {
			t.Run(by.String(), func(t *testing.T) {
				b := lay(t, server.Single(t, server.Owned(), server.WithFlavour(f), server.WithPreload(library)))
				now := func() int64 {
					now, err := b.Redis.Do(b.Ctx, b.Redis.B().Time().Build()).AsIntSlice()
					require.NoError(t, err)
					return now[0]
				}
				before := now()
				b.step(time.Hour)
				if now()-before < 3600 {
					t.Skip("this server does not take its time from a library in front of the C library: is it linked statically?")
				}
				b.step(0)
				test(t, b, by)
			})
		}
	})
}

// step makes the server's clock differ from ours by so much.
func (b *bed) step(by time.Duration) {
	b.TB.Helper()
	_, err := b.D.Nodes()[0].Put(wallclock.File, wallclock.Ahead(by))
	require.NoError(b.TB, err)
}

// The server's clock is stepped forward: leases end early there. The next in line has the lock, with a
// higher token, and the holder learns of that when it renews next. Nothing hangs, and when the clock is
// right again, tokens still grow.
func TestTheClockIsSteppedForward(t *testing.T) {
	eachStep(t, func(t *testing.T, b *bed, by time.Duration) {
		const lease, renewEvery = 8 * time.Second, 2 * time.Second
		cfg := client.Config{Lease: lease, RenewEvery: renewEvery}
		c, other := b.Connect(b.D.ClientOption(), cfg), b.Connect(b.D.ClientOption(), cfg)
		alone, contested := b.Take(c, "alone"), b.Take(c, "contested")
		waiting := b.Acquire(b.Ctx, other, "contested")
		b.Line(c, "contested", 1)
		b.step(by)
		began := time.Now()
		next := b.Locked(waiting)
		require.Greater(t, next.Lock.Fence(), contested.Fence())
		for _, l := range []*client.Lock{alone, contested} {
			require.ErrorIs(t, b.Ended(l.Context()), client.ErrTaken)
		}
		learned := time.Since(began)
		t.Logf("%v: the next in line had it after %v, the holder of before knew it after %v",
			by, next.At.Sub(began), learned)
		require.Less(t, learned, renewEvery+3*time.Second, "at the next renewal")
		again := b.Take(c, "alone")
		require.Greater(t, again.Fence(), alone.Fence())
		b.setRight(c, other, again, next.Lock)
	})
}

// The server's clock is stepped back: leases last longer there. Holders and lines go on, tokens grow,
// and nothing hangs.
func TestTheClockIsSteppedBack(t *testing.T) {
	eachStep(t, func(t *testing.T, b *bed, by time.Duration) {
		const lease = 2 * time.Second
		cfg := client.Config{Lease: lease, RenewEvery: lease / 10}
		c, other := b.Connect(b.D.ClientOption(), cfg), b.Connect(b.D.ClientOption(), cfg)
		l, contested := b.Take(c, "alone"), b.Take(c, "contested")
		dead := b.Connect(b.D.ClientOption(), cfg)
		b.Take(dead, "forgotten")
		dead.Close()
		died := time.Now()
		waiting := b.Acquire(b.Ctx, other, "contested")
		b.Line(c, "contested", 1)
		b.step(-by)
		b.Eventually("renewals for longer than a lease", func() bool {
			return time.Since(died) > 2*lease || l.Context().Err() != nil
		})
		require.NoError(t, l.Context().Err())
		info, err := c.Inspect(b.Ctx, "forgotten")
		require.NoError(t, err)
		require.True(t, info.Held, "a lock whose holder is dead outlives its lease")
		t.Logf("%v after the holder's death its lease of %v has %v to go", time.Since(died), lease, info.Remaining)
		b.Release(contested)
		next := b.Locked(waiting).Lock
		require.Greater(t, next.Fence(), contested.Fence())
		fence := next.Fence()
		for range 100 {
			fresh := b.Take(c, "fresh")
			require.Greater(t, fresh.Fence(), fence)
			fence = fresh.Fence()
			b.Release(fresh)
		}
		b.setRight(c, other, l, next)
	})
}

// setRight lets the clock be right again, and asserts that what follows is as ever. Who holds a lock
// then can lose it, when the clock goes forward.
func (b *bed) setRight(c, other *client.Client, held ...*client.Lock) {
	b.TB.Helper()
	b.step(0)
	for _, l := range held {
		_ = l.Release(b.Ctx)
	}
	for _, name := range []string{"alone", "contested", "forgotten"} {
		l := b.Take(c, name, client.WithFreshAnswer())
		next := b.Acquire(b.Ctx, other, name)
		b.Line(c, name, 1)
		b.Release(l)
		o := b.Locked(next)
		for _, before := range append(held, l) {
			require.Greater(b.TB, o.Lock.Fence(), before.Fence())
		}
		b.Release(o.Lock)
	}
}
