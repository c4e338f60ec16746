// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
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
	opt := bed.Options(w, "a", "10.0.0.1:6379")
	opt.DisableCache = true
	return bed.Open(t, opt, cfg), bed.Open(t, bed.Options(w, "b", "10.0.0.1:6379"), cfg)
}

// replicated is a primary that is old and has a replica, in a Cluster of which two clients know.
func replicated(t *testing.T, w *redis.World, cfg client.Config) (p, r *redis.Node, a, b *client.Client) {
	t.Helper()
	nodes := w.Cluster(1, 1)
	old(t, nodes[0])
	a, b = inCluster(t, w, cfg)
	return nodes[0], nodes[1], a, b
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
	m := atOnce(t, c, l)
	require.NoError(t, l.Context().Err(), "two holders")
	require.LessOrEqual(t, ends(t, l, client.ErrTaken), renewEvery)
	require.NoError(t, m.Context().Err())
	return m
}

// atOnce takes a lock that another holds, or held until this moment.
func atOnce(t *testing.T, c *client.Client, l *client.Lock) *client.Lock {
	t.Helper()
	began := time.Now()
	m, err := c.Acquire(ctx, l.Name(), client.WithMaxWait(moment))
	for errors.Is(err, client.ErrUnreachable) { // it looks for the server
		time.Sleep(50 * time.Millisecond)
		m, err = c.Acquire(ctx, l.Name(), client.WithMaxWait(moment))
	}
	require.NoError(t, err)
	require.Less(t, time.Since(began), moment, "at once")
	require.Greater(t, m.Fence(), l.Fence(), "the token tells them apart")
	return m
}

// afterGuard takes a lock when the guard is over, and not before: its holder has learned of its loss.
func afterGuard(t *testing.T, c *client.Client, l *client.Lock) *client.Lock {
	t.Helper()
	began := time.Now()
	require.LessOrEqual(t, nobodyYet(t, c, l.Name()), guard)
	m := bed.Must(c.Acquire(ctx, l.Name()))
	require.GreaterOrEqual(t, time.Since(began), guard)
	require.Less(t, time.Since(began), guard+moment)
	require.ErrorIs(t, context.Cause(l.Context()), client.ErrLost)
	return m
}

// No memory moves with a slot.
func TestASlotOfAYoungServerIsGrantedAtOnce(t *testing.T) {
	slot := int(cluster.Slot("lock:x"))
	type move func(t *testing.T, w *redis.World, c *client.Client, from, to *redis.Node)
	bed.Each(t, map[string]move{
		"moved": func(t *testing.T, w *redis.World, c *client.Client, from, to *redis.Node) {
			from.Restart(redis.Nothing)
			bed.Load(t, from)
			time.Sleep(100 * time.Millisecond)
			nobodyYet(t, c, "x")
			w.Migrate(slot, to)
		},
		"taken by hand": func(_ *testing.T, w *redis.World, _ *client.Client, from, to *redis.Node) {
			from.Kill()
			w.StartMigration(slot, to)
			w.FinishMigration(slot)
		},
	}, func(t *testing.T, w *redis.World, move move) {
		nodes := w.Cluster(3, 0)
		old(t, nodes...)
		a, b := inCluster(t, w, client.Config{Lease: lease, Guard: guard})
		from, to := ownerOf(w, "lock:x", nodes)
		l := bed.Must(a.Acquire(ctx, "x"))
		move(t, w, b, from, to)
		require.NoError(t, atOnce(t, b, l).Release(ctx)) // the holder may look first where its connection has ended
		require.LessOrEqual(t, ends(t, l, client.ErrTaken), renewEvery)
	})
}

// The target of a move is lost before its replicas have the key, and what they have is not the lock.
func TestALockIsLostWithTheTargetOfItsMove(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		nodes := w.Cluster(2, 1)
		bed.Load(t, nodes[:2]...)
		a, b := inCluster(t, w, client.Config{Lease: lease, Replicas: 1})
		l := bed.Must(a.Acquire(ctx, "x"))
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

// With replicas a value is lost with the primary if they do not have it yet. They have its lock: so nobody makes
// another value before the lease has ended there.
func TestAValueIsNotReplicatedWithItsLock(t *testing.T) {
	bed.Each(t, map[string]bool{"lost": true, "kept": false}, func(t *testing.T, w *redis.World, lost bool) {
		_, heir, a, b := replicated(t, w, client.Config{Lease: lease, Replicas: 1})
		get := func(c *client.Client, mine string) string {
			return string(bed.Must(c.OnceValue(ctx, "x", time.Hour, func(context.Context) ([]byte, error) {
				if mine == "1" && lost {
					heir.StopReplication()
				}
				return []byte(mine), nil
			})))
		}
		require.Equal(t, "1", get(a, "1"))
		time.Sleep(100 * time.Millisecond)
		promote(w, heir)
		promoted := time.Now()
		if !lost {
			require.Equal(t, "1", get(b, "2"))
			require.Less(t, time.Since(promoted), moment)
			return
		}
		require.Equal(t, "2", get(b, "2"))
		require.GreaterOrEqual(t, time.Since(promoted), lease-moment)
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
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		nodes := w.Cluster(2, 0)
		from, to := ownerOf(w, "lock:{x}held", nodes)
		old(t, from)
		a, b := inCluster(t, w, client.Config{Lease: lease, Guard: guard, AutoLoad: true})
		l := bed.Must(a.Acquire(ctx, "{x}held"))
		require.NoError(t, bed.Must(a.Acquire(ctx, "{x}free")).Release(ctx))
		w.Migrate(int(cluster.Slot("lock:{x}held")), to)
		began := time.Now()
		require.NoError(t, l.Renew(ctx))
		require.LessOrEqual(t, nobodyYet(t, b, "{x}free"), guard)
		m := bed.Must(b.Acquire(ctx, "{x}free"))
		require.GreaterOrEqual(t, time.Since(began), guard)
		require.Less(t, time.Since(began), guard+moment)
		require.NoError(t, m.Release(ctx))
		require.NoError(t, l.Release(ctx))
	})
}

// A primary restarts with an older memory or none, or a replica does and is promoted before it has
// synchronised. That all replicas have a lock is no help then.
func TestAServerForgetsAtEveryLevel(t *testing.T) {
	type forget struct {
		replica bool
		disk    redis.Disk
	}
	atEveryLevel(t, map[string]forget{
		"a primary/an older memory": {false, redis.FromSave}, "a primary/none": {false, redis.Nothing},
		"a replica/an older memory": {true, redis.FromSave}, "a replica/none": {true, redis.Nothing},
	}, func(t *testing.T, w *redis.World, lv level, f forget) {
		n, r, a, b := replicated(t, w, lv.cfg)
		n.Save()
		r.Save()
		l := bed.Must(a.Acquire(ctx, "x"))
		time.Sleep(100 * time.Millisecond)
		if f.replica {
			r.StopReplication()
			r.Restart(f.disk)
			promote(w, r)
			n = r
		} else {
			n.Restart(f.disk)
		}
		time.Sleep(100 * time.Millisecond)
		if f.disk == redis.Nothing {
			_, err := b.TryAcquire(ctx, "x", client.WithFreshAnswer())
			require.ErrorIs(t, err, client.ErrLibrary)
			bed.Load(t, n)
		}
		require.Nil(t, n.Hash("lock:x"))
		take := second
		if lv.cfg.Guard > 0 {
			take = afterGuard
		}
		require.NoError(t, take(t, b, l).Release(ctx))
	})
}

// The clock of a server goes forward by more than a lease: of the primary, or of a replica that is
// promoted then.
func TestLeasesEndEarlyAtEveryLevel(t *testing.T) {
	whose := map[string]bool{"its clock": false, "that of its successor": true}
	atEveryLevel(t, whose, func(t *testing.T, w *redis.World, lv level, successor bool) {
		if lv.cfg.Guard > 0 && successor {
			t.Skip("a promotion is a pause")
		}
		p, r, a, b := replicated(t, w, lv.cfg)
		l := bed.Must(a.Acquire(ctx, "x"))
		if successor {
			r.SetClock(lease+time.Second, 0)
			w.Failover(r, redis.Failover{})
		} else {
			p.SetClock(lease+time.Second, 0)
		}
		require.NoError(t, second(t, b, l).Release(ctx))
	})
}

// The pause ends by the server's clock.
func TestAClockSteppedForwardShortensThePause(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := bed.Loaded(t, w, "a:1")
		c := onServer(t, w, "a", n.Addr(), client.Config{Lease: lease, Guard: guard})
		began := time.Now()
		require.InDelta(t, guard, nobodyYet(t, c, "x"), float64(time.Second))
		n.SetClock(guard/2, 0)
		require.InDelta(t, guard/2, nobodyYet(t, c, "x"), float64(time.Second))
		l := bed.Must(c.Acquire(ctx, "x"))
		require.InDelta(t, guard/2, time.Since(began), float64(time.Second))
		require.NoError(t, l.Release(ctx))
	})
}

// The clock of a server goes back: leases last longer there, and its memory is younger.
func TestLeasesLastLongerAtEveryLevel(t *testing.T) {
	type back struct{ age, back, pause time.Duration }
	atEveryLevel(t, map[string]back{
		"a memory that stays old enough": {age: 2 * guard, back: guard / 2},
		"a memory that gets too young":   {age: guard, back: guard / 2, pause: guard / 2},
		"before the memory began":        {age: guard, back: time.Hour, pause: guard},
	}, func(t *testing.T, w *redis.World, lv level, step back) {
		n := oldPrimary(t, w)
		time.Sleep(step.age - guard)
		c, dead := onServer(t, w, "a", n.Addr(), lv.cfg), onServer(t, w, "b", n.Addr(), lv.cfg)
		held, left := bed.Must(c.Acquire(ctx, "held")), bed.Must(dead.Acquire(ctx, "left"))
		began := time.Now()
		dead.Close()
		n.SetClock(-step.back, 0)
		if lv.cfg.Guard > 0 && step.pause > 0 {
			require.InDelta(t, step.pause, nobodyYet(t, c, "free"), float64(time.Second))
		} else {
			require.NoError(t, bed.Must(c.TryAcquire(ctx, "free")).Release(ctx))
		}
		next := bed.Must(c.Acquire(ctx, "left"))
		require.InDelta(t, lease+step.back, time.Since(began), float64(moment))
		require.Greater(t, next.Fence(), left.Fence())
		require.NoError(t, held.Release(ctx))
	})
}

// The clock of a server is behind, and the server forgets what it gave out.
func TestTokensFallWithTheClockAtEveryLevel(t *testing.T) {
	atEveryLevel(t, map[string]bool{"back": true}, func(t *testing.T, w *redis.World, lv level, _ bool) {
		n := oldPrimary(t, w)
		c := onServer(t, w, "a", n.Addr(), lv.cfg)
		before := bed.Must(c.Acquire(ctx, "x"))
		require.NoError(t, before.Release(ctx))
		n.SetClock(-time.Hour, 0)
		n.Restart(redis.Nothing)
		bed.Load(t, n)
		time.Sleep(moment)
		after := bed.Must(c.Acquire(ctx, "x"))
		require.Less(t, after.Fence(), before.Fence())
		require.NoError(t, after.Release(ctx))
	})
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
	type end struct {
		how  string
		kind error
	}
	ways := map[string]end{"a DEL": {"deleted", client.ErrTaken}, "a break": {"broken", client.ErrBroken}}
	atEveryLevel(t, ways, func(t *testing.T, w *redis.World, lv level, e end) {
		n := oldPrimary(t, w)
		a, b := onServer(t, w, "a", n.Addr(), lv.cfg), onServer(t, w, "b", n.Addr(), lv.cfg)
		l := bed.Must(a.Acquire(ctx, "x"))
		time.Sleep(moment)
		deletions[e.how](n, b)
		m := bed.Must(b.TryAcquire(ctx, "x"))
		require.Greater(t, m.Fence(), l.Fence())
		require.Less(t, ends(t, l, e.kind), time.Second)
		require.NoError(t, m.Context().Err())
		require.NoError(t, m.Release(ctx))
	})
}

// What freed a lock is lost by a failover: the lock is its holder's again, who has heard of nothing.
func TestADeletionThatAFailoverLosesIsUndone(t *testing.T) {
	bed.Each(t, deletions, func(t *testing.T, w *redis.World, free func(*redis.Node, *client.Client)) {
		p, r, a, b := replicated(t, w, client.Config{Lease: lease, Guard: guard})
		l := bed.Must(a.Acquire(ctx, "x", client.WithOwner("job")))
		time.Sleep(100 * time.Millisecond)
		r.StopReplication()
		free(p, b)
		m := bed.Must(b.TryAcquire(ctx, "x"))
		require.Greater(t, m.Fence(), l.Fence())
		promote(w, r)
		require.NoError(t, m.Context().Err())
		require.LessOrEqual(t, ends(t, m, client.ErrTaken), renewEvery)
		time.Sleep(2 * lease)
		require.NoError(t, l.Context().Err())
		require.NoError(t, l.Release(ctx))
	})
}
