package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/cluster"
)

func TestAskAndTryAgainWhileASlotMigrates(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		nodes := w.Cluster(2, 0)
		from, to := ownerOf(w, "{x}1", nodes)
		c := openWith(t, options(w, "a", from.Addr()), client.Config{}).Redis()
		slot := int(cluster.Slot("{x}1"))
		must(c.Do(ctx, c.B().Set().Key("{x}1").Value("one").Build()).ToString())
		w.StartMigration(slot, to)
		must(c.Do(ctx, c.B().Set().Key("{x}2").Value("two").Build()).ToString()) // ASK: it is made at the target
		expect(t, []any{to.Do("DBSIZE"), from.Do("DBSIZE")}, []any{int64(1), int64(1)})
		both := c.B().Del().Key("{x}1", "{x}2").Build().Pin()
		require.EqualError(t, c.Do(ctx, both).Error(), "TRYAGAIN Multiple keys request during rehashing of slot")
		w.MoveKeys(slot)
		w.FinishMigration(slot)
		expect(t, must(c.Do(ctx, both).AsInt64()), int64(2))
	})
}

func TestForcedFailoverLosesWhatWasNotReplicated(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
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

func TestSentinelSwitchesThePrimary(t *testing.T) {
	bubble(t, redis.Options{Latency: -1}, func(t *testing.T, w *redis.World) {
		p := loaded(t, w, "a:1")
		r := w.Replica("b:1", p)
		w.Sentinels("m", p, "s:26379", "s2:26379")
		opt := options(w, "a", "s:26379")
		opt.Sentinel = rueidis.SentinelOption{MasterSet: "m"}
		a := openWith(t, opt, client.Config{})
		l := must(a.Acquire(ctx, "x"))
		time.Sleep(time.Second)
		w.Failover(r, redis.Failover{})
		time.Sleep(15 * time.Second)
		require.NoError(t, l.Context().Err())
		require.NoError(t, l.Release(ctx))
		expect(t, r.Do("EXISTS", "lock:x"), int64(0))
	})
}

// rueidis asks a Redis 8 for CLUSTER SHARDS, and others for CLUSTER SLOTS.
func TestLocksAreWhereTheirSlotsAre(t *testing.T) {
	for flavour, other := range []string{redis.Redis70: "SHARDS", redis.Redis80: "SLOTS", redis.Valkey: "SLOTS"} {
		bubble(t, redis.Options{Flavour: redis.Flavour(flavour)}, func(t *testing.T, w *redis.World) {
			nodes := w.Cluster(2, 1)
			load(t, nodes[:2]...)
			for _, n := range nodes {
				n.Refuse(func(cmd []string) redis.Error {
					if cmd[0] == "CLUSTER" && cmd[1] == other {
						return "ERR not here"
					}
					return ""
				})
			}
			a := openWith(t, options(w, "a", nodes[0].Addr()), client.Config{})
			for _, name := range []string{"x", "y", "z", "1", "2"} {
				l := must(a.Acquire(ctx, name))
				expect(t, w.Owner("lock:" + name).Hash("lock:" + name)["owner"], l.Owner())
			}
		})
	}
}

// With AutoLoad a call loads the library on every primary. One that another call connects to in vain does
// not keep it beyond its context's end.
func TestAutoLoadEndsWithTheContext(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		nodes := w.Cluster(2, 1)
		time.Sleep(time.Second)
		c := openWith(t, options(w, "client", nodes[0].Addr()), client.Config{AutoLoad: true, Replicas: 1})
		mine, other := ownerOf(w, "lock:x", nodes)
		_ = must(c.Acquire(ctx, "x")).Release(ctx)
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
