package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
)

// moment is how long clients take to find a server after a fault.
const moment = 2 * time.Second

// inCluster opens two clients of a Cluster. The first one has no cache, by which it would hear of the
// loss of its locks before it renews them.
func inCluster(t *testing.T, w *redis.World, cfg client.Config) (a, b *client.Client) {
	t.Helper()
	opt := options(w, "a", "10.0.0.1:6379")
	opt.DisableCache = true
	return openWith(t, opt, cfg), openWith(t, options(w, "b", "10.0.0.1:6379"), cfg)
}

// onServer opens a client of a single server.
func onServer(t *testing.T, w *redis.World, host string, n *redis.Node, cfg client.Config) *client.Client {
	t.Helper()
	opt := options(w, host, n.Addr())
	opt.ForceSingleClient = true
	return openWith(t, opt, cfg)
}

// ends waits for the end of a lock that was lost, and returns how long that took.
func ends(t *testing.T, l *client.Lock, kind error) time.Duration {
	t.Helper()
	began := time.Now()
	select {
	case <-l.Context().Done():
	case <-time.After(lease):
	}
	require.ErrorIs(t, context.Cause(l.Context()), kind)
	return time.Since(began)
}

// second takes a lock that another holds, who has not heard of it and learns at its next renewal.
func second(t *testing.T, c *client.Client, l *client.Lock) *client.Lock {
	t.Helper()
	began := time.Now()
	m, err := c.Acquire(ctx, l.Name(), client.WithMaxWait(moment))
	for errors.Is(err, client.ErrUnreachable) { // it looks for the server
		time.Sleep(50 * time.Millisecond)
		m, err = c.Acquire(ctx, l.Name(), client.WithMaxWait(moment))
	}
	require.NoError(t, err)
	require.Less(t, time.Since(began), moment, "at once")
	require.NoError(t, l.Context().Err(), "two holders")
	require.LessOrEqual(t, ends(t, l, client.ErrTaken), renewEvery)
	require.NoError(t, m.Context().Err())
	return m
}

// afterGuard takes a lock when the guard is over, and not before: its holder has learned of its loss.
func afterGuard(t *testing.T, c *client.Client, l *client.Lock) *client.Lock {
	t.Helper()
	began := time.Now()
	require.LessOrEqual(t, nobodyYet(t, c, l.Name()), guard)
	m := must(c.Acquire(ctx, l.Name()))
	require.GreaterOrEqual(t, time.Since(began), guard)
	require.Less(t, time.Since(began), guard+moment)
	require.ErrorIs(t, context.Cause(l.Context()), client.ErrLost)
	return m
}

// No memory moves with a slot.
func TestASlotOfAYoungServerIsGrantedAtOnce(t *testing.T) {
	slot := int(cluster.Slot("lock:x"))
	type move func(t *testing.T, w *redis.World, c *client.Client, from, to *redis.Node)
	for name, move := range map[string]move{
		"moved": func(t *testing.T, w *redis.World, c *client.Client, from, to *redis.Node) {
			from.Restart(redis.Nothing)
			load(t, from)
			time.Sleep(100 * time.Millisecond)
			nobodyYet(t, c, "x")
			w.Migrate(slot, to)
		},
		"taken by hand": func(_ *testing.T, w *redis.World, _ *client.Client, from, to *redis.Node) {
			from.Kill()
			w.StartMigration(slot, to)
			w.FinishMigration(slot)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
				nodes := w.Cluster(3, 0)
				old(t, nodes...)
				a, b := inCluster(t, w, client.Config{Lease: lease, Guard: guard})
				defer a.Close()
				defer b.Close()
				from, to := w.Owner("lock:x"), nodes[0]
				if from == to {
					to = nodes[1]
				}
				l := must(a.Acquire(ctx, "x"))
				move(t, w, b, from, to)
				require.NoError(t, second(t, b, l).Release(ctx))
			})
		})
	}
}

// The target of a move is lost before its replicas have the key, and what they have is not the lock.
func TestALockIsLostWithTheTargetOfItsMove(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		nodes := w.Cluster(2, 1)
		load(t, nodes[:2]...)
		a, b := inCluster(t, w, client.Config{Lease: lease, Replicas: 1})
		defer a.Close()
		defer b.Close()
		l := must(a.Acquire(ctx, "x"))
		to, heir := nodes[0], nodes[2]
		if w.Owner("lock:x") == to {
			to, heir = nodes[1], nodes[3]
		}
		heir.StopReplication()
		w.Migrate(int(cluster.Slot("lock:x")), to)
		require.Equal(t, l.Owner(), to.Hash("lock:x")["owner"])
		time.Sleep(100 * time.Millisecond)
		promote(w, heir)
		require.Nil(t, heir.Hash("lock:x"))
		require.NoError(t, second(t, b, l).Release(ctx))
	})
}

// promote kills a primary, and has a replica take its place. The other one comes back as its replica.
func promote(w *redis.World, heir *redis.Node) {
	was := heir.Primary()
	was.Kill()
	w.Failover(heir, redis.Failover{Force: true})
	heir.StartReplication()
	was.Restart(redis.Everything)
	was.Isolate(false) // it hears of its successor
	time.Sleep(100 * time.Millisecond)
}

// A slot moves to a node that has no library, and so no memory.
func TestANodeThatIsGivenTheLibraryGrantsAfterGuard(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		nodes := w.Cluster(2, 0)
		from, to := w.Owner("lock:{x}held"), nodes[0]
		if from == to {
			to = nodes[1]
		}
		old(t, from)
		a, b := inCluster(t, w, client.Config{Lease: lease, Guard: guard, AutoLoad: true})
		defer a.Close()
		defer b.Close()
		l := must(a.Acquire(ctx, "{x}held"))
		require.NoError(t, must(a.Acquire(ctx, "{x}free")).Release(ctx))
		w.Migrate(int(cluster.Slot("lock:{x}held")), to)
		began := time.Now()
		require.NoError(t, l.Renew(ctx))
		require.LessOrEqual(t, nobodyYet(t, b, "{x}free"), guard)
		m := must(b.Acquire(ctx, "{x}free"))
		require.GreaterOrEqual(t, time.Since(began), guard)
		require.Less(t, time.Since(began), guard+moment)
		require.NoError(t, m.Release(ctx))
		require.NoError(t, l.Release(ctx))
	})
}

// A primary restarts with an older memory or none, or a replica does and is promoted before it has
// synchronised. That all replicas have a lock is no help then.
func TestAServerForgetsAtEveryLevel(t *testing.T) {
	disks := map[string]redis.Disk{"an older memory": redis.FromSave, "none": redis.Nothing}
	for how, restart := range map[string]func(w *redis.World, p, r *redis.Node, d redis.Disk) *redis.Node{
		"a primary": func(_ *redis.World, p, _ *redis.Node, d redis.Disk) *redis.Node {
			p.Restart(d)
			return p
		},
		"a replica": func(w *redis.World, _, r *redis.Node, d redis.Disk) *redis.Node {
			r.StopReplication()
			r.Restart(d)
			promote(w, r)
			return r
		},
	} {
		for memory, disk := range disks {
			for _, lv := range levels {
				t.Run(how+"/"+memory+"/"+lv.name, func(t *testing.T) {
					bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
						nodes := w.Cluster(1, 1)
						old(t, nodes[0])
						a, b := inCluster(t, w, lv.cfg)
						defer a.Close()
						defer b.Close()
						for _, n := range nodes {
							n.Save()
						}
						l := must(a.Acquire(ctx, "x"))
						time.Sleep(100 * time.Millisecond)
						n := restart(w, nodes[0], nodes[1], disk)
						time.Sleep(100 * time.Millisecond)
						if disk == redis.Nothing {
							_, err := b.TryAcquire(ctx, "x", client.WithFreshAnswer())
							require.ErrorIs(t, err, client.ErrLibrary)
							load(t, n)
						}
						require.Nil(t, n.Hash("lock:x"))
						take := second
						if lv.cfg.Guard > 0 {
							take = afterGuard
						}
						require.NoError(t, take(t, b, l).Release(ctx))
					})
				})
			}
		}
	}
}

// The clock of a server goes forward by more than a lease: of the primary, or of a replica that is
// promoted then.
func TestLeasesEndEarlyAtEveryLevel(t *testing.T) {
	for _, lv := range levels {
		for name, step := range map[string]func(w *redis.World, p, r *redis.Node){
			"its clock": func(_ *redis.World, p, _ *redis.Node) { p.SetClock(lease+time.Second, 0) },
			"that of its successor": func(w *redis.World, p, r *redis.Node) {
				r.SetClock(lease+time.Second, 0)
				w.Failover(r, redis.Failover{})
			},
		} {
			if lv.cfg.Guard > 0 && name != "its clock" {
				continue // a promotion is a pause
			}
			t.Run(name+"/"+lv.name, func(t *testing.T) {
				bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
					nodes := w.Cluster(1, 1)
					old(t, nodes[0])
					a, b := inCluster(t, w, lv.cfg)
					defer a.Close()
					defer b.Close()
					l := must(a.Acquire(ctx, "x"))
					step(w, nodes[0], nodes[1])
					m := second(t, b, l)
					require.Greater(t, m.Fence(), l.Fence())
					require.NoError(t, m.Release(ctx))
				})
			})
		}
	}
}

// The pause ends by the server's clock.
func TestAClockSteppedForwardShortensThePause(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:1")
		load(t, n)
		c := onServer(t, w, "a", n, client.Config{Lease: lease, Guard: guard})
		defer c.Close()
		began := time.Now()
		require.InDelta(t, guard, nobodyYet(t, c, "x"), float64(time.Second))
		n.SetClock(guard/2, 0)
		require.InDelta(t, guard/2, nobodyYet(t, c, "x"), float64(time.Second))
		l := must(c.Acquire(ctx, "x"))
		require.InDelta(t, guard/2, time.Since(began), float64(time.Second))
		require.NoError(t, l.Release(ctx))
	})
}

// The clock of a server goes back: leases last longer there, and its memory is younger.
func TestLeasesLastLongerAtEveryLevel(t *testing.T) {
	for _, lv := range levels {
		for name, c := range map[string]struct{ age, back, pause time.Duration }{
			"a memory that stays old enough": {age: 2 * guard, back: guard / 2},
			"a memory that gets too young":   {age: guard, back: guard / 2, pause: guard / 2},
			"before the memory began":        {age: guard, back: time.Hour, pause: guard},
		} {
			t.Run(name+"/"+lv.name, func(t *testing.T) {
				bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
					stepBack(t, w, lv, c.age, c.back, c.pause)
				})
			})
		}
	}
}

func stepBack(t *testing.T, w *redis.World, lv level, age, back, pause time.Duration) {
	n := w.Node("a:1")
	w.Replica("b:1", n)
	old(t, n)
	time.Sleep(age - guard)
	c, dead := onServer(t, w, "a", n, lv.cfg), onServer(t, w, "b", n, lv.cfg)
	defer c.Close()
	held, left := must(c.Acquire(ctx, "held")), must(dead.Acquire(ctx, "left"))
	began := time.Now()
	dead.Close()
	n.SetClock(-back, 0)
	if lv.cfg.Guard > 0 && pause > 0 {
		require.InDelta(t, pause, nobodyYet(t, c, "free"), float64(time.Second))
	} else {
		require.NoError(t, must(c.TryAcquire(ctx, "free")).Release(ctx))
	}
	next := must(c.Acquire(ctx, "left"))
	require.InDelta(t, lease+back, time.Since(began), float64(moment))
	require.Greater(t, next.Fence(), left.Fence())
	require.NoError(t, held.Release(ctx))
}

// The clock of a server is behind, and the server forgets what it gave out.
func TestTokensFallWithTheClockAtEveryLevel(t *testing.T) {
	for _, lv := range levels {
		t.Run(lv.name, func(t *testing.T) {
			bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
				n := w.Node("a:1")
				w.Replica("b:1", n)
				old(t, n)
				c := onServer(t, w, "a", n, lv.cfg)
				defer c.Close()
				before := must(c.Acquire(ctx, "x"))
				require.NoError(t, before.Release(ctx))
				n.SetClock(-time.Hour, 0)
				n.Restart(redis.Nothing)
				load(t, n)
				time.Sleep(moment)
				after := must(c.Acquire(ctx, "x"))
				require.Less(t, after.Fence(), before.Fence())
				require.NoError(t, after.Release(ctx))
			})
		})
	}
}

// deletions free a lock behind its holder's back.
var deletions = map[string]func(n *redis.Node, c *client.Client){
	"deleted": func(n *redis.Node, _ *client.Client) { n.Do("DEL", "lock:x") },
	"broken": func(n *redis.Node, _ *client.Client) {
		n.Do("FCALL", functions.Break, "1", "lock:x", functions.OptReason, "a test")
	},
	"released": func(_ *redis.Node, c *client.Client) {
		if err := c.ReleaseOwner(ctx, "x", "job"); err != nil {
			panic(err)
		}
	},
}

// A key is deleted, as by eviction, or a lock is broken. Who is told learns of it at once.
func TestADeletedLockIsAnothersAtEveryLevel(t *testing.T) {
	for _, lv := range levels {
		for name, kind := range map[string]error{"deleted": client.ErrTaken, "broken": client.ErrBroken} {
			t.Run(name+"/"+lv.name, func(t *testing.T) {
				bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
					n := w.Node("a:1")
					w.Replica("b:1", n)
					old(t, n)
					a, b := onServer(t, w, "a", n, lv.cfg), onServer(t, w, "b", n, lv.cfg)
					defer a.Close()
					defer b.Close()
					l := must(a.Acquire(ctx, "x"))
					time.Sleep(moment)
					deletions[name](n, b)
					m := must(b.TryAcquire(ctx, "x"))
					require.Greater(t, m.Fence(), l.Fence())
					require.Less(t, ends(t, l, kind), time.Second)
					require.NoError(t, m.Context().Err())
					require.NoError(t, m.Release(ctx))
				})
			})
		}
	}
}

// What freed a lock is lost by a failover: the lock is its holder's again, who has heard of nothing.
func TestADeletionThatAFailoverLosesIsUndone(t *testing.T) {
	for name, free := range deletions {
		t.Run(name, func(t *testing.T) {
			bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
				nodes := w.Cluster(1, 1)
				old(t, nodes[0])
				a, b := inCluster(t, w, client.Config{Lease: lease, Guard: guard})
				defer a.Close()
				defer b.Close()
				l := must(a.Acquire(ctx, "x", client.WithOwner("job")))
				time.Sleep(100 * time.Millisecond)
				nodes[1].StopReplication()
				free(nodes[0], b)
				m := must(b.TryAcquire(ctx, "x"))
				require.Greater(t, m.Fence(), l.Fence())
				promote(w, nodes[1])
				require.NoError(t, m.Context().Err())
				require.LessOrEqual(t, ends(t, m, client.ErrTaken), renewEvery)
				time.Sleep(2 * lease)
				require.NoError(t, l.Context().Err())
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}
