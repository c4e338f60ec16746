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

func TestAskAndTryAgainWhileASlotMigrates(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		nodes := w.Cluster(2, 0)
		from, to := ownerOf(w, "{x}1", nodes)
		c := bed.Open(t, bed.Options(w, "a", from.Addr()), client.Config{}).Redis()
		slot := int(cluster.Slot("{x}1"))
		bed.Must(c.Do(ctx, c.B().Set().Key("{x}1").Value("one").Build()).ToString())
		w.StartMigration(slot, to)
		bed.Must(c.Do(ctx, c.B().Set().Key("{x}2").Value("two").Build()).ToString()) // ASK: it is made at the target
		expect(t, []any{to.Do("DBSIZE"), from.Do("DBSIZE")}, []any{int64(1), int64(1)})
		both := c.B().Del().Key("{x}1", "{x}2").Build().Pin()
		require.EqualError(t, c.Do(ctx, both).Error(), "TRYAGAIN Multiple keys request during rehashing of slot")
		w.MoveKeys(slot)
		w.FinishMigration(slot)
		expect(t, bed.Must(c.Do(ctx, both).AsInt64()), int64(2))
	})
}

func TestForcedFailoverLosesWhatWasNotReplicated(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		nodes := w.Cluster(1, 1)
		time.Sleep(time.Second)
		nodes[1].StopReplication()
		expect(t, nodes[0].Do("SET", "k", "v"), redis.Status("OK"))
		w.Failover(nodes[1], redis.Failover{Force: true, Isolated: true})
		expect(t, nodes[1].Do("GET", "k"), nil)
		expect(t, nodes[0].Do("GET", "k"), "v") // it does not know
		nodes[1].Do("SET", "k", "new")
		nodes[1].StartReplication()
		nodes[0].Isolate(false)
		time.Sleep(time.Second)
		expect(t, nodes[0].Do("GET", "k"), "new")
		expect(t, nodes[0].Do("SET", "k", "x"), redis.Error("READONLY You can't write against a read only replica."))
	})
}

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
