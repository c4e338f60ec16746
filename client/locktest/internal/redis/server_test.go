package redis_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/redis/rueidis"
)

func fn(body string) string {
	return "#!lua name=t\nredis.register_function('t', function(keys, args) " + body + " end)"
}

// run loads a library of one function and calls it.
func run(t *testing.T, n *redis.Node, body string, keys ...string) any {
	t.Helper()
	if got := n.Do("FUNCTION", "LOAD", "REPLACE", fn(body)); got != "t" {
		t.Fatalf("load: %v", got)
	}
	return n.Do(append([]string{"FCALL", "t", itoa(len(keys))}, keys...)...)
}

func itoa(n int) string { return strconv.Itoa(n) }

func TestExpiryEarlyAndLate(t *testing.T) {
	for name, early := range map[string]bool{"early": true, "late": false} {
		t.Run(name, func(t *testing.T) {
			var gone time.Time
			hooks := redis.Hooks{Write: func(w redis.Write) {
				if w.Expired {
					gone = time.Now()
				}
			}}
			bubble(t, redis.Options{Early: early, Hooks: hooks}, func(t *testing.T, w *redis.World) {
				n := w.Node("a:6379")
				start := time.Now()
				n.Do("SET", "k", "v", "PX", "1000")
				end := start.Add(time.Second)
				time.Sleep(2 * time.Second)
				n.Do("PING") // after the hook, for the race detector
				late := gone.Sub(end)
				if early && (late < 0 || late >= time.Millisecond) || !early && (late < time.Millisecond || late > 102*time.Millisecond) {
					t.Errorf("deleted %v after its end", late)
				}
				n.Do("SET", "k", "v", "PX", "1000")
				if !early {
					time.Sleep(time.Second) // the millisecond of its end still belongs to it
					expect(t, n.Do("PTTL", "k"), int64(0))
					time.Sleep(time.Millisecond)
					expect(t, n.Do("PTTL", "k"), int64(-2))
				}
				expect(t, n.Do("SET", "p", "v"), redis.Status("OK"))
				expect(t, n.Do("PEXPIREAT", "p", "1000"), int64(1))
				expect(t, n.Do("EXISTS", "p"), int64(0))
			})
		})
	}
}

func TestTimeInFunctions(t *testing.T) {
	body := "local a = redis.call('TIME') local b = redis.call('TIME') return (b[1] - a[1]) * 1000000 + b[2] - a[2]"
	for flavour, want := range map[redis.Flavour]int64{redis.Redis70: 50_000, redis.Redis80: 0, redis.Valkey: 0} {
		bubble(t, redis.Options{Flavour: flavour, Step: 50 * time.Millisecond}, func(t *testing.T, w *redis.World) {
			expect(t, run(t, w.Node("a:1"), body), want)
		})
	}
	bubble(t, redis.Options{Step: 50 * time.Millisecond}, func(t *testing.T, w *redis.World) {
		got := run(t, w.Node("a:1"), `local t = redis.call('TIME') redis.call('HSET', keys[1], 'f', 'v')
			redis.call('PEXPIREAT', keys[1], t[1] * 1000 + math.floor(t[2] / 1000) + 20) return redis.call('EXISTS', keys[1])`, "k")
		expect(t, got, int64(0)) // 7.0 deletes it in the middle of the function
	})
}

func TestErrorsOfFunctions(t *testing.T) {
	for body, want := range map[string]string{
		"return redis.call('GET', keys[1])":                        "WRONGTYPE Operation against a key holding the wrong kind of value script: t, on @user_function:2.",
		"return redis.call('GET')":                                 "ERR Wrong number of args calling Redis command from script script: t, on @user_function:2.",
		"x = 1":                                                    "ERR user_function:2: Attempt to modify a readonly table script: t, on @user_function:2.",
		"return nope":                                              "ERR user_function:2: Script attempted to access nonexistent global variable 'nope' script: t, on @user_function:2.",
		"return redis.error_reply('foo')":                          "ERR foo",
		"return redis.call('SET', keys[1], {})":                    "ERR Lua redis lib command arguments must be strings or integers script: t, on @user_function:2.",
		"return redis.acl_check_cmd('NOPE')":                       "ERR Invalid command passed to redis.acl_check_cmd() script: t, on @user_function:2.",
		"return redis.call('MULTI')":                               "ERR This Redis command is not allowed from script script: t, on @user_function:2.",
		"return redis.pcall('GET', keys[1])":                       "WRONGTYPE Operation against a key holding the wrong kind of value",
		"local ok, e = pcall(redis.call, 'GET', keys[1]) return e": "",
	} {
		bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
			n := w.Node("a:1")
			n.Do("RPUSH", "k", "x")
			got := run(t, n, body, "k")
			if want == "" {
				expect(t, got, "WRONGTYPE Operation against a key holding the wrong kind of value")
				return
			}
			expect(t, got, redis.Error(want))
		})
	}
}

func TestRefusals(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:6379")
		load(t, n)
		a := open(t, w, "a", "a:6379")
		defer a.Close()
		l := must(a.Acquire(ctx, "x"))
		for c, code := range map[redis.Condition]string{redis.Full: "OOM", redis.Loading: "LOADING", redis.SaveFailed: "MISCONF", redis.TooFewReplicas: "NOREPLICAS", redis.Busy: "BUSY"} {
			n.Set(c, true)
			_, err := a.TryAcquire(ctx, "y")
			if !errors.Is(err, client.ErrUnreachable) || !strings.Contains(err.Error(), code) {
				t.Errorf("%s: %v", code, err)
			}
			if err := l.Renew(ctx); (err == nil) != (c == redis.Full) { // allow-oom
				t.Errorf("renew with %s: %v", code, err)
			}
			n.Set(c, false)
		}
		n.Refuse(func(cmd []string) redis.Error { return "NOPERM not today" })
		if _, err := a.TryAcquire(ctx, "y"); !errors.Is(err, client.ErrDenied) {
			t.Errorf("refused: %v", err)
		}
		n.Refuse(nil)
	})
}

func TestALostReply(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:6379")
		load(t, n)
		c := must(rueidis.NewClient(options(w, "a", "a:6379")))
		defer c.Close()
		n.LoseReply(func(cmd []string) bool { return cmd[0] == "SET" })
		if err := c.Do(ctx, c.B().Set().Key("k").Value("v").Build()).Error(); err == nil {
			t.Error("a reply came")
		}
		n.LoseReply(nil)
		expect(t, must(c.Do(ctx, c.B().Get().Key("k").Build()).ToString()), "v")
	})
}

func TestDialErrorsLookLikeThoseOfTCP(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:6379")
		check := func(what string, took time.Duration) {
			t.Helper()
			start := time.Now()
			_, err := w.Dial(ctx, "a:6379", &net.Dialer{Timeout: time.Second}, nil)
			var op *net.OpError
			if !errors.As(err, &op) || op.Op != "dial" {
				t.Errorf("%s: %v", what, err)
			}
			if d := time.Since(start); d < took || d > took+10*time.Millisecond {
				t.Errorf("%s took %v", what, d)
			}
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
	for name, nodes := range map[string]func(w *redis.World) []*redis.Node{
		"replica": func(w *redis.World) []*redis.Node { p := w.Node("a:1"); return []*redis.Node{p, w.Replica("b:1", p)} },
		"cluster": func(w *redis.World) []*redis.Node { return w.Cluster(1, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
				both := nodes(w)
				opt := options(w, "a", both[1].Addr())
				opt.ForceSingleClient = true
				c := must(rueidis.NewClient(opt))
				defer c.Close()
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				got := make(chan string, 1)
				go func() {
					_ = c.Receive(ctx, c.B().Ssubscribe().Channel("ch").Build(), func(m rueidis.PubSubMessage) { got <- m.Message })
				}()
				time.Sleep(time.Second)
				expect(t, both[1].Subscribers("ch"), 1)
				expect(t, both[0].Do("SPUBLISH", "ch", "hello"), int64(0))
				expect(t, <-got, "hello")
			})
		})
	}
}

func TestWaitCountsReplicas(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		p := w.Node("a:6379")
		r := w.Replica("b:6379", p)
		c := must(rueidis.NewClient(options(w, "a", "a:6379")))
		defer c.Close()
		set := func() int64 {
			got := c.DoMulti(ctx, c.B().Set().Key("k").Value("v").Build(), c.B().Wait().Numreplicas(1).Timeout(300).Build())
			return must(got[1].AsInt64())
		}
		time.Sleep(time.Second)
		expect(t, set(), int64(1))
		r.StopReplication()
		start := time.Now()
		expect(t, set(), int64(0))
		if took := time.Since(start); took < 300*time.Millisecond {
			t.Errorf("WAIT took %v", took)
		}
		r.StartReplication()
	})
}
