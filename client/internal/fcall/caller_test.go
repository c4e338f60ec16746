// SPDX-License-Identifier: Apache-2.0

package fcall

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// connect returns a Caller of a server. As for a client with a cache, rueidis pipelines every call.
func connect(t testing.TB, addr string, change func(*Config)) *Caller {
	t.Helper()
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, PipelineMultiplex: -1,
		ClientTrackingOptions: []string{"OPTIN", "NOLOOP"}, OnInvalidations: func([]rueidis.RedisMessage) {}})
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	cfg := quiet(redis)
	if change != nil {
		change(&cfg)
	}
	return New(cfg)
}

// quiet is a Config of which nobody hears.
func quiet(redis rueidis.Client) Config {
	return Config{Redis: redis, Closing: context.Background(), Heard: func() {}, Changed: func(string, bool) {}, Untracked: func(error) {},
		Demoted: func() {}}
}

// loaded returns a server that has the library.
func loaded(t testing.TB) *server.Deployment {
	s := server.Single(t)
	s.Load(t)
	return s
}

// about makes a call for a lock of this test.
func about(t testing.TB, verb Verb, change ...func(*Call)) Call {
	c := Call{Verb: verb, Key: "lock:" + t.Name(), Owner: "w", TTL: "30000"}
	for _, f := range change {
		f(&c)
	}
	return c
}

func other(c *Call)   { c.Owner = "other" }
func tracked(c *Call) { c.Tracked = true }

func TestDo(t *testing.T) {
	c := connect(t, loaded(t).Addrs()[0], nil)
	ctx := t.Context()
	got, err := c.Do(ctx, about(t, Acquire, ofRun))
	require.NoError(t, err)
	require.True(t, got.Yes)
	require.Equal(t, got.Fence+4, got.Top)
	line, err := c.Do(ctx, about(t, Wait, other, func(c *Call) { c.Channel, c.MaxWait = "ch:"+c.Key, time.Minute }))
	require.NoError(t, err)
	require.Equal(t, "w", line.Holder)
	require.Equal(t, got.Fence, line.Fence)
	require.Equal(t, int64(1), line.Waiters)
	require.Equal(t, functions.WhyHeld, line.Why)
	require.WithinDuration(t, time.Now(), time.UnixMilli(line.ServerMS), time.Minute)
	renewed, err := c.Do(ctx, about(t, Renew, func(c *Call) { c.Fence = got.Fence }))
	require.NoError(t, err)
	require.Equal(t, got.Fence, renewed.Fence)
	state, err := c.Do(ctx, about(t, Inspect))
	require.NoError(t, err)
	require.Equal(t, Reply{Yes: true, Holder: "w", Holds: 1, Fence: got.Fence, Remaining: state.Remaining, Waiters: 1, Why: functions.WhyHeld}, state)
	left, err := c.Do(ctx, about(t, Leave, other))
	require.NoError(t, err)
	require.True(t, left.Yes)
	broken, err := c.Do(ctx, about(t, Break, func(c *Call) { c.Reason = "by hand" }))
	require.NoError(t, err)
	require.Equal(t, Reply{Yes: true, Holder: "w", Fence: got.Fence}, broken)
	gone, err := c.Do(ctx, about(t, Release))
	require.NoError(t, err)
	require.Equal(t, [2]string{functions.WhyBroken, "by hand"}, [2]string{gone.Why, gone.Reason})
	_, err = c.Do(ctx, about(t, Acquire, joinable))
	require.NoError(t, err)
	done, err := c.Do(ctx, about(t, Release, joinable))
	require.NoError(t, err)
	require.Equal(t, Reply{Yes: true}, done)
}

func TestSend(t *testing.T) {
	var heard, changed atomic.Int64
	c := connect(t, loaded(t).Addrs()[0], func(cfg *Config) {
		cfg.Heard, cfg.Changed = func() { heard.Add(1) }, func(string, bool) { changed.Add(1) }
	})
	for _, ctx := range []context.Context{t.Context(), context.Background()} {
		heard.Store(0)
		changed.Store(0)
		outcomes := c.Send(ctx, []Call{about(t, Acquire), about(t, Acquire, other, tracked), about(t, Inspect, tracked), about(t, Acquire, joinable),
			about(t, Release)})
		require.Len(t, outcomes, 5)
		require.True(t, outcomes[0].Yes)
		require.Equal(t, "w", outcomes[1].Holder)
		require.True(t, outcomes[2].Reply.Yes)
		require.ErrorIs(t, outcomes[3].Err, ErrArgument)
		require.True(t, outcomes[4].Yes)
		require.Equal(t, int64(5), heard.Load())
		require.Equal(t, int64(3), changed.Load(), "not for a read, and not for a refusal that is to be remembered")
	}
}

// The server tells of the key of a tracked call, in a pipeline too.
func TestTracked(t *testing.T) {
	s := loaded(t)
	invalidated := make(chan string, 10)
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: s.Addrs(), PipelineMultiplex: -1, ClientTrackingOptions: []string{"OPTIN"},
		OnInvalidations: func(messages []rueidis.RedisMessage) {
			for _, m := range messages {
				key, _ := m.ToString()
				invalidated <- key
			}
		}})
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	c, elsewhere := New(quiet(redis)), connect(t, s.Addrs()[0], nil)
	got, err := elsewhere.Do(t.Context(), about(t, Acquire))
	require.NoError(t, err)
	require.True(t, got.Yes)
	for _, ask := range []func() error{
		func() error { return second(c.Do(t.Context(), about(t, Acquire, other, tracked))) },
		func() error { return c.Send(t.Context(), []Call{about(t, Inspect, tracked)})[0].Err },
	} {
		require.NoError(t, ask())
		_, err := elsewhere.Do(t.Context(), about(t, Renew))
		require.NoError(t, err)
		require.Equal(t, about(t, Renew).Key, <-invalidated)
	}
}

// A server that refuses to track answers the call all the same.
func TestUntracked(t *testing.T) {
	s := loaded(t)
	var refused atomic.Int64
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: s.Addrs(), PipelineMultiplex: -1, DisableCache: true})
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	cfg := quiet(redis)
	cfg.Untracked = func(err error) { require.True(t, Lasting(err), "%v", err); refused.Add(1) }
	c := New(cfg)
	require.NoError(t, second(c.Do(t.Context(), about(t, Inspect, tracked))))
	require.NoError(t, c.Send(t.Context(), []Call{about(t, Inspect, tracked)})[0].Err)
	require.Equal(t, int64(2), refused.Load())
}

// straightAndNot runs a test with a Caller whose calls may go straight, and with one that cannot know.
func straightAndNot(t *testing.T, test func(t *testing.T, ended *atomic.Uint32)) {
	t.Run("straight", func(t *testing.T) { test(t, new(atomic.Uint32)) })
	t.Run("shared", func(t *testing.T) { test(t, nil) })
}

// A call that is given up is done all the same, and has changed its key later than its caller heard.
func TestLateChange(t *testing.T) {
	straightAndNot(t, func(t *testing.T, ended *atomic.Uint32) {
		s := loaded(t)
		calls := func() string { return s.Nodes()[0].Info(t.Context(), "commandstats", "cmdstat_fcall") }
		proxy := server.NewProxy(t, s.Addrs()[0])
		changed := make(chan string, 4)
		c := connect(t, proxy.Addr, func(cfg *Config) { cfg.Ended, cfg.Changed = ended, func(key string, _ bool) { changed <- key } })
		require.NoError(t, second(c.Do(t.Context(), about(t, Inspect))))
		require.Equal(t, ended != nil, straight(c.health("k")))
		proxy.StallReplies()
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			go func(before string) {
				for calls() == before { // it is given up when the server has done it
				}
				cancel()
			}(calls())
			_, err := c.Do(ctx, about(t, Acquire))
			require.ErrorIs(t, err, context.Canceled)
			require.True(t, Unknown(err))
			<-changed
		}
		require.Empty(t, changed)
		require.Equal(t, int64(2), c.abandoned.Load(), "rueidis keeps a place for each")
		require.Equal(t, int64(2), c.flying.Load())
		proxy.Resume()
		<-changed
		<-changed
		require.Eventually(t, func() bool { return c.abandoned.Load()+c.flying.Load() == 0 }, 5*time.Second, time.Millisecond)
		state, err := c.Do(t.Context(), about(t, Inspect))
		require.NoError(t, err)
		require.True(t, state.Yes)
	})
}

// mortal counts its end.
type mortal struct {
	net.Conn
	ended *atomic.Uint32
}

func (m mortal) Close() error {
	m.ended.Add(1)
	return m.Conn.Close()
}

// A call that waited for a connection when its caller gave up is back at once, and not sent once there is
// one.
func TestNotSentLate(t *testing.T) {
	straightAndNot(t, func(t *testing.T, ended *atomic.Uint32) {
		s := loaded(t)
		proxy := server.NewProxy(t, s.Addrs()[0])
		gate := make(chan struct{}, 1)
		gate <- struct{}{} // for the first connection
		redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{proxy.Addr}, DisableCache: true, PipelineMultiplex: -1,
			DialCtxFn: func(ctx context.Context, to string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
				<-gate
				conn, err := d.DialContext(ctx, "tcp", to)
				if err == nil && ended != nil {
					conn = mortal{conn, ended}
				}
				return conn, err
			}})
		require.NoError(t, err)
		t.Cleanup(redis.Close)
		cfg := quiet(redis)
		cfg.Ended = ended
		c := New(cfg)
		require.NoError(t, second(c.Do(t.Context(), about(t, Inspect))))
		proxy.Cut()
		for err = nil; !errors.Is(err, context.DeadlineExceeded); { // until rueidis connects again
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			_, err = c.Do(ctx, about(t, Acquire))
			cancel()
		}
		close(gate)
		state, err := c.Do(context.Background(), about(t, Inspect))
		require.NoError(t, err)
		require.Equal(t, functions.WhyFree, state.Why)
		require.Eventually(t, func() bool { return c.flying.Load() == 0 }, 5*time.Second, time.Millisecond)
		require.Equal(t, ended != nil, straight(c.health("k")), "there is a connection again")
	})
}

// Where many calls have no answer, further ones do not go straight: rueidis may have no room.
func TestManyCallsDoNotGoStraight(t *testing.T) {
	proxy := server.NewProxy(t, loaded(t).Addrs()[0])
	c := connect(t, proxy.Addr, func(cfg *Config) { cfg.Ended = new(atomic.Uint32) })
	require.NoError(t, second(c.Do(t.Context(), about(t, Inspect))))
	proxy.Stall()
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for range 4 * maxStraight {
		calls.Go(func() { _, _ = c.Do(ctx, about(t, Inspect)) })
	}
	require.Eventually(t, func() bool { return c.flying.Load() == 4*maxStraight }, 5*time.Second, time.Millisecond)
	cancel()
	calls.Wait() // though rueidis' queue is full
	proxy.Resume()
	require.Eventually(t, func() bool { return c.flying.Load() == 0 }, 5*time.Second, time.Millisecond)
}

// Who does not wait for a context pays for no goroutine, and an integer is no array: the rest is rueidis'.
func TestAllocations(t *testing.T) {
	c := connect(t, loaded(t).Addrs()[0], nil)
	take, give := about(t, Acquire), about(t, Release)
	pair := func(ctx context.Context) func() {
		return func() {
			if r, err := c.Do(ctx, take); err != nil || !r.Yes {
				t.Fatal(r, err)
			}
			if r, err := c.Do(ctx, give); err != nil || !r.Yes {
				t.Fatal(r, err)
			}
		}
	}
	// Two; under the race detector a sync.Pool forgets a quarter of what it gets.
	require.LessOrEqual(t, testing.AllocsPerRun(1000, pair(context.Background())), 3.0)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, pair(t.Context())), 14.0)
	c.Ended, c.healthy = new(atomic.Uint32), make([]atomic.Uint32, 1)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, pair(t.Context())), 5.0, "straight")
}

func TestADemotedServerIsToldOf(t *testing.T) {
	s := server.Replicated(t, 1)
	s.Load(t)
	var demoted atomic.Int64
	c := connect(t, s.Nodes()[1].Addr, func(cfg *Config) { cfg.Demoted = func() { demoted.Add(1) } })
	_, err := c.Do(t.Context(), about(t, Acquire))
	require.ErrorIs(t, err, ErrUnreachable)
	require.False(t, Unknown(err))
	require.Equal(t, int64(1), demoted.Load())
}

// blinking is a server that refuses CLIENT CACHING for a moment, and what follows no more.
type blinking struct{ rueidis.Client }

func (b blinking) DoMulti(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	results := []rueidis.RedisResult{rueidis.NewErrorResult(refusal("BUSY Redis is busy running a script"))}
	return append(results, b.Client.DoMulti(ctx, commands[1:]...)...)
}

// What the server does not track is told of at once, so its answer is not kept.
func TestAnAnswerThatIsNotTracked(t *testing.T) {
	changed := 0
	c := connect(t, loaded(t).Addrs()[0], func(cfg *Config) {
		cfg.Redis, cfg.Changed = blinking{cfg.Redis}, func(string, bool) { changed++ }
	})
	require.NoError(t, second(c.Do(t.Context(), about(t, Inspect, tracked))))
	require.Equal(t, 1, changed)
}

// Who waits already may ask for a guard later, also in the call that hands the lock to another one.
func TestAWaitersGuardIsKeptBesideAGrant(t *testing.T) {
	c := connect(t, loaded(t).Addrs()[0], nil)
	as := func(verb Verb, owner string, change func(*Call)) Reply {
		r, err := c.Do(t.Context(), about(t, verb, func(c *Call) { c.Owner = owner }, change))
		require.NoError(t, err)
		return r
	}
	plain := func(*Call) {}
	as(Acquire, "holder", plain)
	as(Wait, "limited", func(c *Call) { c.Crowd = 2 })
	as(Wait, "guarded", plain)
	key := about(t, Wait).Key
	require.NoError(t, c.Redis.Do(t.Context(), c.Redis.B().Hset().Key(key).FieldValue().FieldValue("until", "1").Build()).Error())
	require.Equal(t, functions.WhyLimited, as(Wait, "guarded", func(c *Call) { c.Guard = TTL(functions.MaxTTL * time.Millisecond) }).Why)
	require.Equal(t, functions.WhySettling, as(Wait, "third", func(c *Call) { c.Crowd = 3 }).Why)
}
