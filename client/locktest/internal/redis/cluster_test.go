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
	"github.com/holdfast-go/holdfast/cluster"
)

// With AutoLoad a call loads the library on every primary. One that another call connects to in vain does
// not keep it beyond its context's end.
func TestAutoLoadEndsWithTheContext(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		nodes := w.Cluster(2, 1)
		time.Sleep(time.Second)
		c := bed.Open(t, bed.Options(w, "client", nodes[0].Addr()), client.Config{AutoLoad: true, Replicas: 1})
		mine, other := ownerOf(w, "lock:x", nodes)
		_ = bed.Must(c.Acquire(ctx, "x")).Release(ctx)
		mine.Do("FUNCTION", "FLUSH")
		w.Silence(redis.Path{Node: other}, true)
		w.Reset(redis.Path{Node: other})
		go func() { _ = c.Redis().Nodes()[other.Addr()].Do(ctx, c.Redis().B().Ping().Build()) }()
		time.Sleep(time.Millisecond)
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, _ = c.Acquire(short, "x")
		require.LessOrEqual(t, time.Since(began), 350*time.Millisecond)
	})
}

// It loads it there beside a replica that is dead or silent.
func TestAutoLoadBesideALostReplica(t *testing.T) {
	ways := map[string]func(*redis.Node){"dead": (*redis.Node).Kill, "silent": (*redis.Node).Pause}
	bed.Each(t, ways, func(t *testing.T, w *redis.World, lose func(*redis.Node)) {
		nodes := w.Cluster(3, 1)
		c := bed.Open(t, bed.Options(w, "client", nodes[0].Addr()), client.Config{AutoLoad: true})
		l := bed.Must(c.Acquire(ctx, "held"))
		lose(nodes[3])
		for range 3 {
			for _, n := range nodes[:3] {
				n.Do("FUNCTION", "FLUSH")
			}
			time.Sleep(2 * time.Second)
			require.NoError(t, l.Renew(ctx))
			for _, n := range nodes[:3] {
				require.Len(t, n.Do("FUNCTION", "LIST"), 1)
			}
			require.NoError(t, bed.Must(c.TryAcquire(ctx, "another")).Release(ctx))
		}
		require.NoError(t, l.Release(ctx))
	})
}

// A slot moves to a node without the library. With AutoLoad calls go on, and so do held locks and lines.
// Without, the error names the command, while the slot is on its way and afterwards; a held lock goes on if
// the library comes within its lease.
func TestASlotMovesToANodeWithoutTheLibrary(t *testing.T) {
	bed.Each(t, map[string]bool{"AutoLoad": true, "by hand": false}, func(t *testing.T, w *redis.World, autoLoad bool) {
		nodes, slot := w.Cluster(3, 1), int(cluster.Slot("lock:{x}held"))
		from, to := ownerOf(w, "lock:{x}held", nodes[:3])
		bed.Load(t, from)
		c := bed.Open(t, bed.Options(w, "c", from.Addr()), client.Config{AutoLoad: autoLoad})
		other := bed.Open(t, bed.Options(w, "other", from.Addr()), client.Config{AutoLoad: true})
		l := bed.Must(c.Acquire(ctx, "{x}held"))
		next := bed.Waits(t, other, "{x}held", nil)
		time.Sleep(time.Second)
		take := func(opts ...client.Option) {
			t.Helper()
			free, err := c.TryAcquire(ctx, "{x}free", opts...)
			if autoLoad {
				require.NoError(t, err)
				require.NoError(t, free.Release(ctx))
				return
			}
			require.ErrorIs(t, err, client.ErrLibrary)
			require.ErrorContains(t, err, "run: holdfast load --addr ")
		}
		w.StartMigration(slot, to)
		take()
		take(client.WithReplicas(1, time.Second))
		w.MoveKeys(slot)
		w.FinishMigration(slot)
		take()
		take(client.WithReplicas(1, time.Second))
		if !autoLoad {
			require.NoError(t, l.Context().Err(), "the lease stands")
			bed.Load(t, to)
		}
		time.Sleep(time.Minute)
		require.NoError(t, l.Release(ctx))
		m := <-next
		require.Greater(t, m.Fence(), l.Fence())
		require.NoError(t, m.Release(ctx))
	})
}
