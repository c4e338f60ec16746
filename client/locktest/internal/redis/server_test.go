package redis_test

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// run loads a library of one function and calls it.
func run(t *testing.T, n *redis.Node, body string, keys ...string) any {
	t.Helper()
	source := "#!lua name=t\nredis.register_function('t', function(keys, args) " + body + " end)"
	require.Equal(t, "t", n.Do("FUNCTION", "LOAD", "REPLACE", source))
	return n.Do(append([]string{"FCALL", "t", itoa(len(keys))}, keys...)...)
}

func itoa(n int) string { return strconv.Itoa(n) }

// whenExpired notes when a key was deleted because its time was over.
func whenExpired(at *time.Time) redis.Hooks {
	return redis.Hooks{Write: func(w redis.Write) {
		if w.Expired {
			*at = time.Now()
		}
	}}
}

func TestExpiryEarlyAndLate(t *testing.T) {
	for _, early := range []bool{true, false} {
		var gone time.Time
		bed.In(t, redis.Options{Early: early, Hooks: whenExpired(&gone)}, func(t *testing.T, w *redis.World) {
			n := w.Node("a:1")
			n.Do("SET", "k", "v", "PX", "1000")
			end := time.Now().Add(time.Second)
			time.Sleep(2 * time.Second)
			n.Do("PING") // after the hook, for the race detector
			if early {
				require.WithinRange(t, gone, end, end.Add(time.Millisecond))
				return
			}
			require.WithinRange(t, gone, end.Add(time.Millisecond), end.Add(102*time.Millisecond))
			n.Do("SET", "k", "v", "PX", "1000")
			time.Sleep(time.Second) // the millisecond of its end still belongs to it
			expect(t, n.Do("PTTL", "k"), int64(0))
			time.Sleep(time.Millisecond)
			expect(t, n.Do("PTTL", "k"), int64(-2))
			n.Do("SET", "p", "v")
			expect(t, n.Do("PEXPIREAT", "p", "1000"), int64(1))
			expect(t, n.Do("EXISTS", "p"), int64(0))
		})
	}
}

func TestTimeInFunctions(t *testing.T) {
	body := "local a = redis.call('TIME') local b = redis.call('TIME') return (b[1] - a[1]) * 1000000 + b[2] - a[2]"
	for flavour, want := range map[redis.Flavour]int64{redis.Redis70: 50_000, redis.Redis80: 0, redis.Valkey: 0} {
		bed.In(t, redis.Options{Flavour: flavour, Step: 50 * time.Millisecond}, func(t *testing.T, w *redis.World) {
			expect(t, run(t, w.Node("a:1"), body), want)
		})
	}
	bed.In(t, redis.Options{Step: 50 * time.Millisecond}, func(t *testing.T, w *redis.World) {
		got := run(t, w.Node("a:1"), `local t = redis.call('TIME') redis.call('HSET', keys[1], 'f', 'v')
			redis.call('PEXPIREAT', keys[1], t[1] * 1000 + math.floor(t[2] / 1000) + 20) return redis.call('EXISTS', keys[1])`, "k")
		expect(t, got, int64(0)) // 7.0 deletes it in the middle of the function
	})
}

func TestDialErrorsLookLikeThoseOfTCP(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:1")
		check := func(what string, took time.Duration) {
			t.Helper()
			start := time.Now()
			_, err := w.Host("").Dial(ctx, "a:1", &net.Dialer{Timeout: time.Second}, nil)
			var op *net.OpError
			require.ErrorAs(t, err, &op, what)
			require.Equal(t, "dial", op.Op)
			require.InDelta(t, took, time.Since(start), float64(10*time.Millisecond), what)
		}
		w.Refuse(redis.Path{}, true)
		check("refused", 0)
		w.Refuse(redis.Path{}, false)
		w.Stall(redis.Path{Node: n}, redis.ToClient)
		check("stalled", time.Second)
		w.Resume(redis.Path{Node: n})
		n.Kill()
		check("dead", 0)
	})
}

// A message reaches subscribers at replicas, and counts only those here.
func TestMessagesReachReplicas(t *testing.T) {
	bed.Each(t, map[string]func(w *redis.World) (p, r *redis.Node){
		"replica": func(w *redis.World) (p, r *redis.Node) { p = w.Node("a:1"); return p, w.Replica("b:1", p) },
		"cluster": func(w *redis.World) (p, r *redis.Node) { both := w.Cluster(1, 1); return both[0], both[1] },
	}, func(t *testing.T, w *redis.World, nodes func(w *redis.World) (p, r *redis.Node)) {
		p, r := nodes(w)
		c := dial(t, w, "h", r.Addr())
		c.send("SSUBSCRIBE", "ch")
		time.Sleep(time.Second)
		expect(t, r.Do("PUBSUB", "SHARDNUMSUB", "ch"), []any{"ch", int64(1)})
		expect(t, p.Do("SPUBLISH", "ch", "hello"), int64(0))
		for got := ""; got != "hello"; {
			got = bed.Must(c.reply(time.Second))
		}
	})
}
