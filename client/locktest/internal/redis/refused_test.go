package redis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// twoFaced is an address behind which now one server answers, now another, as behind a proxy or in
// a client's view of a Cluster during a failover.
type twoFaced struct {
	world *redis.World
	now   atomic.Pointer[redis.Node]
}

func (f *twoFaced) dial(ctx context.Context, _ string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
	return f.world.Host("client").Dial(ctx, f.now.Load().Addr(), d, c)
}

// turn has the other one answer from here on.
func (f *twoFaced) turn(to *redis.Node) {
	f.world.Reset(redis.Path{Node: f.now.Swap(to)})
}

// behindTwoFaces is a client of an address behind which n answers at first.
func behindTwoFaces(t *testing.T, w *redis.World, n *redis.Node) (*twoFaced, *client.Client) {
	f := &twoFaced{world: w}
	f.now.Store(n)
	opt := options(w, "client", "address:1")
	opt.ForceSingleClient, opt.DialCtxFn = true, f.dial
	return f, openWith(t, opt, client.Config{})
}

// Who says that a lock is not its holder's need not be the one who granted it. That one keeps others
// out until the holder has left, and not for a whole lease.
func TestWhatWasRefusedIsGivenBackWhereItWasGranted(t *testing.T) {
	ends := map[string]func(t *testing.T, f *twoFaced, granter, deposed *redis.Node, l *client.Lock){
		"a renewal is refused": func(t *testing.T, f *twoFaced, granter, deposed *redis.Node, l *client.Lock) {
			f.turn(deposed)
			<-l.Context().Done()
			if err := context.Cause(l.Context()); !errors.Is(err, client.ErrTaken) {
				t.Errorf("the lock ended with %v", err)
			}
			f.turn(granter)
			time.Sleep(2 * time.Second)
			expect(t, granter.Hash("lock:x")["owner"], l.Owner()) // its holder may still be at work
			f.turn(deposed)
			time.Sleep(100 * time.Millisecond)
			if err := l.Release(ctx); !errors.Is(err, client.ErrTaken) {
				t.Errorf("the release was answered with %v", err)
			}
		},
		"the release is refused": func(t *testing.T, f *twoFaced, _, deposed *redis.Node, l *client.Lock) {
			f.turn(deposed)
			time.Sleep(100 * time.Millisecond) // connected again
			if err := l.Release(ctx); !errors.Is(err, client.ErrTaken) {
				t.Errorf("the release was answered with %v", err)
			}
		},
		"the release gets lost": func(t *testing.T, f *twoFaced, granter, deposed *redis.Node, l *client.Lock) {
			f.world.Stall(redis.Path{Node: granter}, redis.Both)
			released := make(chan error)
			go func() { released <- l.Release(ctx) }()
			time.Sleep(time.Millisecond)
			f.turn(deposed)
			if err := <-released; err != nil {
				t.Errorf("the release was answered with %v", err)
			}
			f.world.Resume(redis.Path{Node: granter})
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
				granter, deposed := w.Node("a:1"), w.Node("b:1")
				load(t, granter, deposed)
				f, c := behindTwoFaces(t, w, granter)
				defer c.Close()
				l := must(c.Acquire(ctx, "x"))
				end(t, f, granter, deposed, l)
				f.turn(granter)
				time.Sleep(4 * time.Second)
				if owner := granter.Hash("lock:x")["owner"]; owner != "" {
					t.Errorf("4 s after the release the server that granted the lock keeps it for %q", owner)
				}
			})
		})
	}
}

// A client that waited at the deposed primary stands in line there still. That is not the lock, which
// the new one granted.
func TestAPlaceInLineAtTheWrongServerIsNotTheLock(t *testing.T) {
	for name, opts := range map[string][]client.Option{"plain": nil, "a hold": {client.WithOwner("job")}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
				granter, deposed := w.Node("a:1"), w.Node("b:1")
				load(t, granter, deposed)
				other := open(t, w, "other", "b:1")
				defer other.Close()
				must(other.Acquire(ctx, "x"))
				f, c := behindTwoFaces(t, w, deposed)
				defer c.Close()
				got := make(chan *client.Lock)
				go func() { got <- must(c.Acquire(ctx, "x", opts...)) }()
				time.Sleep(3 * time.Second) // it stands in line
				f.turn(granter)
				l := <-got
				f.turn(deposed)
				<-l.Context().Done()
				_ = l.Release(ctx)
				time.Sleep(500 * time.Millisecond)
				f.turn(granter)
				time.Sleep(4 * time.Second)
				if owner := granter.Hash("lock:x")["owner"]; owner != "" {
					t.Errorf("4 s after the release the server that granted the lock keeps it for %q", owner)
				}
			})
		})
	}
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
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		granter, deposed := w.Node("a:1"), w.Node("b:1")
		load(t, granter, deposed)
		other := open(t, w, "other", "a:1")
		defer other.Close()
		before := must(other.Acquire(ctx, "x"))
		f, c := behindTwoFaces(t, w, granter)
		defer c.Close()
		go func() {
			l := must(c.Acquire(ctx, "x"))
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
		got := make(chan *client.Lock)
		go func() { got <- must(c.Acquire(ctx, "x", client.WithLockContext(parent))) }()
		time.Sleep(time.Second)
		_ = before.Release(ctx)
		l := <-got
		if refused.IsZero() {
			t.Fatal("it was not passed on")
		}
		if took := time.Since(refused); took > 5*time.Second {
			t.Errorf("nobody had the lock for %v", took)
		}
		_ = l.Release(ctx)
	})
}

// Close does not wait for locks that were lost, nor for the giving back that is denied meanwhile.
func TestCloseDoesNotWaitForWhatWasRefused(t *testing.T) {
	closes := map[string]func(n *redis.Node, c *client.Client, l *client.Lock){
		"at once":         func(_ *redis.Node, _ *client.Client, _ *client.Lock) {},
		"after a release": func(_ *redis.Node, _ *client.Client, l *client.Lock) { _ = l.Release(ctx) },
		"after a denial": func(_ *redis.Node, _ *client.Client, l *client.Lock) {
			_ = l.Release(ctx)
			time.Sleep(100 * time.Millisecond)
		},
	}
	for name, before := range closes {
		for _, minHold := range []time.Duration{0, time.Minute} {
			t.Run(fmt.Sprint(name, " ", minHold), func(t *testing.T) {
				bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
					n := w.Node("a:1")
					load(t, n)
					c := open(t, w, "client", "a:1")
					l := must(c.Acquire(ctx, "x", client.WithMinHold(minHold)))
					n.Do("DEL", "lock:x")
					<-l.Context().Done()
					before(n, c, l)
					soon(t, c)
				})
			})
		}
	}
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprint("during a release, gone: ", gone), func(t *testing.T) {
			for late := range 20 {
				bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
					n := w.Node("a:1")
					load(t, n)
					c := open(t, w, "client", "a:1")
					l := must(c.Acquire(ctx, "x"))
					if gone {
						n.Do("DEL", "lock:x")
					}
					go func() { _ = l.Release(ctx) }()
					time.Sleep(time.Duration(late) * 25 * time.Microsecond)
					soon(t, c)
				})
			}
		})
	}
}

func soon(t *testing.T, c *client.Client) {
	t.Helper()
	from := time.Now()
	c.Close()
	if took := time.Since(from); took > 100*time.Millisecond {
		t.Errorf("Close took %v", took)
	}
}

// Who ends the holds of an owner does not tell of the loss of one that was released before.
func TestAReleasedHoldIsNotLostAgain(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:1")
		load(t, n)
		var log strings.Builder
		opt := options(w, "client", "a:1")
		opt.ForceSingleClient = true
		c := must(client.Open(opt, client.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}))
		defer c.Close()
		l := must(c.Acquire(ctx, "x", client.WithOwner("job")))
		n.LoseReply(func(cmd []string) bool { return slices.Contains(cmd, functions.Release) })
		go func() {
			time.Sleep(time.Millisecond)
			n.LoseReply(nil)
		}()
		if err := l.Release(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // the giving back was denied
		m := must(c.Acquire(ctx, "x", client.WithOwner("job")))
		if err := c.ReleaseOwner(ctx, "x", "job"); err != nil {
			t.Fatal(err)
		}
		<-m.Context().Done()
		if got := strings.Count(log.String(), "lock lost"); got != 1 {
			t.Errorf("%d locks were lost:\n%s", got, log.String())
		}
	})
}
