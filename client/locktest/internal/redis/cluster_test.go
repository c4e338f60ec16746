package redis_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/cluster"
	"github.com/redis/rueidis"
)

func openCluster(t *testing.T, w *redis.World, host string) *client.Client {
	t.Helper()
	opt := options(w, host, "10.0.0.1:6379")
	return openWith(t, opt, client.Config{})
}

func TestClusterHasEveryLockAtItsSlot(t *testing.T) {
	for _, f := range []redis.Flavour{redis.Redis70, redis.Redis80, redis.Valkey} {
		t.Run(f.String(), func(t *testing.T) {
			bubble(t, redis.Options{Flavour: f}, func(t *testing.T, w *redis.World) {
				nodes := w.Cluster(3, 1)
				load(t, nodes[:3]...)
				a := openCluster(t, w, "a")
				defer a.Close()
				for i := range 30 {
					l := must(a.Acquire(ctx, fmt.Sprint("x", i)))
					if w.Owner("lock:"+l.Name()).Hash("lock:"+l.Name()) == nil {
						t.Errorf("%s is not where its slot is", l.Name())
					}
					if err := l.Release(ctx); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

func TestMigrationOfAHeldLockWithAWaiter(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		nodes := w.Cluster(2, 0)
		load(t, nodes...)
		a, b := openCluster(t, w, "a"), openCluster(t, w, "b")
		defer a.Close()
		defer b.Close()
		l := must(a.Acquire(ctx, "x"))
		got := make(chan *client.Lock)
		go func() { got <- must(b.Acquire(ctx, "x")) }()
		time.Sleep(time.Second)
		from := w.Owner("lock:x")
		to := nodes[0]
		if from == to {
			to = nodes[1]
		}
		w.Migrate(int(cluster.Slot("lock:x")), to)
		if from.Hash("lock:x") != nil || to.Hash("lock:x") == nil {
			t.Fatal("the key did not move")
		}
		time.Sleep(5 * time.Second)
		if err := l.Release(ctx); err != nil {
			t.Fatal(err)
		}
		m := <-got
		if err := m.Release(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAskAndTryAgainWhileASlotMigrates(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		nodes := w.Cluster(2, 0)
		from := w.Owner("{x}1")
		to := nodes[0]
		if from == to {
			to = nodes[1]
		}
		c := must(rueidis.NewClient(options(w, "a", from.Addr())))
		defer c.Close()
		slot := int(cluster.Slot("{x}1"))
		do := func(words ...string) rueidis.RedisResult {
			return c.Do(ctx, c.B().Arbitrary(words[0]).Keys(words[1]).Args(words[2:]...).Build())
		}
		must(do("SET", "{x}1", "one").ToString())
		w.StartMigration(slot, to)
		must(do("SET", "{x}2", "two").ToString()) // ASK: it is made at the target
		if to.Do("DBSIZE") != int64(1) || from.Do("DBSIZE") != int64(1) {
			t.Errorf("keys: %v %v", to.Do("DBSIZE"), from.Do("DBSIZE"))
		}
		err := c.Do(ctx, c.B().Del().Key("{x}1", "{x}2").Build()).Error()
		if err == nil || err.Error() != "TRYAGAIN Multiple keys request during rehashing of slot" {
			t.Errorf("two keys: %v", err)
		}
		w.MoveKeys(slot, 0)
		w.FinishMigration(slot)
		expect(t, must(c.Do(ctx, c.B().Del().Key("{x}1", "{x}2").Build()).AsInt64()), int64(2))
	})
}

func TestGracefulFailoverLosesNothing(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		nodes := w.Cluster(1, 1)
		load(t, nodes[0])
		a, b := openCluster(t, w, "a"), openCluster(t, w, "b")
		defer a.Close()
		defer b.Close()
		l := must(a.Acquire(ctx, "x"))
		got := make(chan *client.Lock)
		go func() { got <- must(b.Acquire(ctx, "x")) }()
		time.Sleep(time.Second)
		w.Failover(nodes[1], redis.Failover{})
		time.Sleep(20 * time.Second)
		if l.Context().Err() != nil {
			t.Error("the lock was lost")
		}
		if nodes[1].Hash("lock:x")["owner"] != l.Owner() {
			t.Errorf("the new primary has %v", nodes[1].Hash("lock:x"))
		}
		if err := l.Release(ctx); err != nil {
			t.Fatal(err)
		}
		m := <-got
		if err := m.Release(ctx); err != nil {
			t.Fatal(err)
		}
		expect(t, nodes[0].Primary() == nodes[1], true)
	})
}

func TestForcedFailoverLosesWhatWasNotReplicated(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		nodes := w.Cluster(1, 1)
		load(t, nodes[0])
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

func TestKilledPrimaryAndItsRestart(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:6379")
		load(t, n)
		a := open(t, w, "a", "a:6379")
		defer a.Close()
		l := must(a.Acquire(ctx, "x"))
		n.Kill()
		time.Sleep(5 * time.Second)
		if _, err := a.TryAcquire(ctx, "y"); !errors.Is(err, client.ErrUnreachable) {
			t.Errorf("try at a dead server: %v", err)
		}
		n.Restart(redis.Everything)
		time.Sleep(20 * time.Second)
		if l.Context().Err() != nil {
			t.Error("the lock was lost over a restart that lost nothing")
		}
		if err := l.Release(ctx); err != nil {
			t.Error(err)
		}
		n.Restart(redis.Nothing)
		if _, err := a.Acquire(ctx, "x"); !errors.Is(err, client.ErrLibrary) && !errors.Is(err, client.ErrUnreachable) {
			t.Errorf("without the library: %v", err)
		}
	})
}

func TestSentinelSwitchesThePrimary(t *testing.T) {
	bubble(t, redis.Options{Latency: -1}, func(t *testing.T, w *redis.World) {
		p := w.Node("a:6379")
		load(t, p)
		r := w.Replica("b:6379", p)
		w.Sentinels("m", p, "s:26379", "s2:26379")
		opt := options(w, "a", "s:26379")
		opt.Sentinel = rueidis.SentinelOption{MasterSet: "m"}
		a := openWith(t, opt, client.Config{})
		l := must(a.Acquire(ctx, "x"))
		time.Sleep(time.Second)
		w.Failover(r, redis.Failover{})
		time.Sleep(15 * time.Second)
		if l.Context().Err() != nil {
			t.Error("lost")
		}
		if err := l.Release(ctx); err != nil {
			t.Error(err)
		}
		expect(t, r.Do("EXISTS", "lock:x"), int64(0))
		a.Close()
	})
}

// With AutoLoad a call loads the library on every primary. One that another call connects to in vain does
// not keep it beyond its context's end.
func TestAutoLoadEndsWithTheContext(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		nodes := w.Cluster(2, 1)
		time.Sleep(time.Second)
		c := openWith(t, options(w, "client", nodes[0].Addr()), client.Config{AutoLoad: true, Replicas: 1})
		defer c.Close()
		mine, other := w.Owner("lock:x"), nodes[0]
		if mine == other {
			other = nodes[1]
		}
		_ = must(c.Acquire(ctx, "x")).Release(ctx)
		mine.Do("FUNCTION", "FLUSH")
		w.Silence(redis.Path{Node: other}, true)
		w.Reset(redis.Path{Node: other})
		go func() { _ = c.Redis().Nodes()[other.Addr()].Do(ctx, c.Redis().B().Ping().Build()) }()
		time.Sleep(time.Millisecond)
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		began := time.Now()
		l, err := c.Acquire(short, "x")
		if took := time.Since(began); took > 350*time.Millisecond {
			t.Errorf("a call with 300 ms ended after %v: %v, %v", took, l, err)
		}
	})
}
