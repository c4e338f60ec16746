// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// twoFaced is an address behind which now one server answers, now another, as behind a proxy or in
// a client's view of a Cluster during a failover.
type twoFaced struct {
	world *redis.World
	now   atomic.Pointer[redis.Node]
}

func (f *twoFaced) dial(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
	n := f.now.Load()
	conn, err := f.world.Host("client").Dial(ctx, n.Addr(), d, c)
	if err == nil && f.now.Load() != n { // it came too late for the turn to reset it
		_ = conn.Close()
		return f.dial(ctx, addr, d, c)
	}
	return conn, err
}

// turn has the other one answer from here on.
func (f *twoFaced) turn(to *redis.Node) {
	f.world.Reset(redis.Path{Node: f.now.Swap(to)})
}

// behindTwoFaces is a client of an address behind which n answers at first.
func behindTwoFaces(t *testing.T, w *redis.World, n *redis.Node) (*twoFaced, *client.Client) {
	f := &twoFaced{world: w}
	f.now.Store(n)
	opt := bed.Single(w, "client", "address:1")
	opt.DialCtxFn = f.dial
	return f, bed.Open(t, opt, client.Config{})
}

// Who says that a lock is not its holder's need not be the one who granted it. That one keeps others
// out until the holder has left, and not for a whole lease.
func TestWhatWasRefusedIsGivenBackWhereItWasGranted(t *testing.T) {
	type end func(t *testing.T, f *twoFaced, granter, deposed *redis.Node, l *client.Lock)
	ends := map[string]end{
		"a renewal is refused": func(t *testing.T, f *twoFaced, granter, deposed *redis.Node, l *client.Lock) {
			f.turn(deposed)
			<-l.Context().Done()
			require.ErrorIs(t, context.Cause(l.Context()), client.ErrTaken)
			f.turn(granter)
			time.Sleep(2 * time.Second)
			require.Equal(t, l.Owner(), granter.Hash("lock:x")["owner"]) // its holder may still be at work
			f.turn(deposed)
			time.Sleep(100 * time.Millisecond)
			require.ErrorIs(t, l.Release(ctx), client.ErrTaken)
		},
		"the release is refused": func(t *testing.T, f *twoFaced, _, deposed *redis.Node, l *client.Lock) {
			f.turn(deposed)
			time.Sleep(100 * time.Millisecond) // connected again
			require.ErrorIs(t, l.Release(ctx), client.ErrTaken)
		},
		"the release gets lost": func(t *testing.T, f *twoFaced, granter, deposed *redis.Node, l *client.Lock) {
			f.world.Stall(redis.Path{Node: granter}, redis.Both)
			released := make(chan error)
			go func() { released <- l.Release(ctx) }()
			time.Sleep(time.Millisecond)
			f.turn(deposed)
			require.NoError(t, <-released)
			f.world.Resume(redis.Path{Node: granter})
		},
	}
	bed.Each(t, ends, func(t *testing.T, w *redis.World, end end) {
		granter, deposed := w.Node("a:1"), w.Node("b:1")
		bed.Load(t, granter, deposed)
		f, c := behindTwoFaces(t, w, granter)
		l := bed.Must(c.Acquire(ctx, "x"))
		end(t, f, granter, deposed, l)
		f.turn(granter)
		time.Sleep(4 * time.Second) // less than a lease
		require.Empty(t, granter.Hash("lock:x")["owner"])
	})
}

// A client that waited at the deposed primary stands in line there still. That is not the lock, which
// the new one granted.
func TestAPlaceInLineAtTheWrongServerIsNotTheLock(t *testing.T) {
	ways := map[string][]client.Option{"plain": nil, "a hold": {client.WithOwner("job")}}
	bed.Each(t, ways, func(t *testing.T, w *redis.World, opts []client.Option) {
		granter, deposed := w.Node("a:1"), w.Node("b:1")
		bed.Load(t, granter, deposed)
		other := open(t, w, "other", "b:1")
		bed.Must(other.Acquire(ctx, "x"))
		f, c := behindTwoFaces(t, w, deposed)
		got := bed.Waits(t, c, "x", nil, opts...)
		time.Sleep(3 * time.Second) // it stands in line
		f.turn(granter)
		l := <-got
		f.turn(deposed)
		<-l.Context().Done()
		_ = l.Release(ctx)
		time.Sleep(500 * time.Millisecond)
		f.turn(granter)
		time.Sleep(4 * time.Second) // less than a lease
		require.Empty(t, granter.Hash("lock:x")["owner"])
	})
}

// slowParent is a context that takes its time when it is first asked for its end.
type slowParent struct {
	context.Context
	once *sync.Once
	busy func()
}

func (p slowParent) Done() <-chan struct{} {
	p.once.Do(p.busy)
	return p.Context.Done()
}

// A lock that is refused while it is passed on within the process has no holder who could release it.
func TestALockThatIsRefusedOnItsWayIsGivenBack(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		granter, deposed := w.Node("a:1"), w.Node("b:1")
		bed.Load(t, granter, deposed)
		other := open(t, w, "other", "a:1")
		before := bed.Must(other.Acquire(ctx, "x"))
		f, c := behindTwoFaces(t, w, granter)
		go func() {
			l := bed.Must(c.Acquire(ctx, "x"))
			time.Sleep(100 * time.Microsecond)
			_ = l.Release(ctx)
		}()
		time.Sleep(time.Second)
		var refused time.Time
		parent := slowParent{context.WithoutCancel(ctx), new(sync.Once), func() {
			time.Sleep(2 * time.Second) // it is confirmed
			f.turn(deposed)
			time.Sleep(10 * time.Second) // a renewal is refused
			f.turn(granter)
			time.Sleep(100 * time.Millisecond)
			refused = time.Now()
		}}
		got := bed.Waits(t, c, "x", nil, client.WithLockContext(parent))
		time.Sleep(time.Second)
		_ = before.Release(ctx)
		l := <-got
		require.NotZero(t, refused, "it was not passed on")
		require.LessOrEqual(t, time.Since(refused), 5*time.Second)
		_ = l.Release(ctx)
	})
}

// Who ends the holds of an owner does not tell of the loss of one that was released before.
func TestAReleasedHoldIsNotLostAgain(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := bed.Loaded(t, w, "a:1")
		var log strings.Builder
		c := onServer(t, w, "client", "a:1", client.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		l := bed.Must(c.Acquire(ctx, "x", client.WithOwner("job")))
		n.LoseReply(func(cmd []string) bool { return slices.Contains(cmd, functions.Release) })
		time.AfterFunc(time.Millisecond, func() { n.LoseReply(nil) })
		require.NoError(t, l.Release(ctx))
		time.Sleep(50 * time.Millisecond) // the giving back was denied
		m := bed.Must(c.Acquire(ctx, "x", client.WithOwner("job")))
		require.NoError(t, c.ReleaseOwner(ctx, "x", "job"))
		<-m.Context().Done()
		synctest.Wait() // it is logged
		require.Equal(t, 1, strings.Count(log.String(), "lock lost"), log.String())
	})
}
