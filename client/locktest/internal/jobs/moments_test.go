package jobs

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
)

// world is what locktest does not show: the ways of the network, what a server is asked, and a Cluster.
type world struct {
	*testing.T
	*redis.World
	first *redis.Node
}

// in runs a test in a world with one server, or a Cluster.
func in(t *testing.T, primaries int, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opt := redis.Options{Latency: 200 * time.Microsecond}
		opt.Unmodelled = func(_, text string) { t.Errorf("not modelled: %s", text) }
		opt.Hooks.Write = func(w redis.Write) {
			if w.After != nil && w.End == 0 {
				t.Errorf("a key without a TTL: %s %v", w.Key, w.After)
			}
		}
		w := &world{T: t, World: redis.New(opt)}
		if primaries > 1 {
			w.Cluster(primaries, 0)
		} else {
			w.Node("s:6379")
		}
		w.first = w.Nodes()[0]
		for _, n := range w.Nodes() {
			require.Equal(t, functions.Library, n.Do("FUNCTION", "LOAD", functions.Source))
		}
		test(w)
		time.Sleep(time.Minute)
		w.Close()
		time.Sleep(10 * time.Second)
	})
}

func (w *world) client(host string, cfg client.Config) *client.Client {
	w.Helper()
	cfg.Lease, cfg.Logger = 3*time.Second, slog.New(slog.NewTextHandler(io.Discard, nil))
	c, err := client.Open(rueidis.ClientOption{InitAddress: []string{w.first.Addr()}, ForceSingleClient: len(w.Nodes()) == 1,
		MaxFlushDelay: -1, DialCtxFn: w.Host(host).Dial}, cfg)
	require.NoError(w, err)
	return c
}

// free fails the test unless nobody has the locks or waits for them, and the client gets them at once.
func (w *world) free(c *client.Client, names ...string) {
	w.Helper()
	for _, name := range names {
		at := w.first
		if len(w.Nodes()) > 1 {
			at = w.Owner("lock:" + name)
		}
		require.Equal(w, []any{int64(0), "", int64(0), int64(0), int64(0), int64(0), functions.WhyFree}, at.Do("FCALL_RO", functions.Inspect, "1", "lock:"+name), name)
	}
	began := time.Now()
	require.NoError(w, c.DoAll(ctx, names, nothing))
	require.Less(w, time.Since(began), 50*time.Millisecond)
}

// The wait ends at any moment of the call, also of one that the network keeps, while others of this
// process wait for each of the locks: nothing is left behind, and the others get on.
func TestAllAreGivenUpAtAnyMoment(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c"}
	for _, stall := range []redis.Direction{-1, redis.ToServer, redis.ToClient} {
		for _, busy := range []string{"", "a", "c"} {
			in(t, 1, func(w *world) {
				var list notes
				c := w.client("h", client.Config{Observer: list.observer()})
				for d := time.Duration(0); d < 2500*time.Microsecond; d += 111 * time.Microsecond {
					if busy != "" {
						w.first.Do("FCALL", functions.Acquire, "1", "lock:"+busy, "other", "600000")
					}
					if stall >= 0 {
						w.Stall(redis.Path{Host: "h"}, stall)
					}
					within, cancel := context.WithTimeout(ctx, d)
					var others sync.WaitGroup
					for _, name := range names {
						others.Go(func() {
							time.Sleep(d / 2)
							began := time.Now()
							require.NoError(t, c.Do(ctx, name, nothing))
							require.Less(t, time.Since(began), 1100*time.Millisecond)
						})
					}
					began := time.Now()
					all, err := c.AcquireAll(within, names)
					require.Less(t, time.Since(began), d+300*time.Millisecond)
					if err == nil {
						_ = all.Release(ctx)
					}
					cancel()
					time.Sleep(10 * time.Millisecond)
					w.Resume(redis.Path{})
					time.Sleep(100 * time.Millisecond)
					w.first.Do("FCALL", functions.Release, "1", "lock:"+busy, "other")
					others.Wait()
					time.Sleep(20 * time.Millisecond)
					w.free(c, names...)
				}
				list.saw(t)
				require.Empty(t, list.asks)
				require.Empty(t, list.open)
				c.Close()
			})
		}
	}
}

// A reply that is lost, or comes when the leases are over, makes no holder, and leaves none behind.
func TestAllThatAreHeardOfTooLate(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c"}
	for late := time.Duration(0); late < 7*time.Second; late += 400 * time.Millisecond {
		in(t, 1, func(w *world) {
			c := w.client("h", client.Config{})
			if late == 0 {
				lost := 0
				w.first.LoseReply(func(cmd []string) bool {
					if !slices.Contains(cmd, functions.Acquire) {
						return false
					}
					lost++
					return lost <= len(names)
				})
			} else {
				w.Stall(redis.Path{Host: "h"}, redis.ToClient)
				time.AfterFunc(late, func() { w.Resume(redis.Path{}) })
			}
			all, err := c.AcquireAll(ctx, names)
			require.NoError(t, err)
			require.NoError(t, all.Context().Err())
			for _, name := range names {
				require.Equal(t, all.Lock(name).Owner(), w.first.Hash("lock:" + name)["owner"])
			}
			time.Sleep(4 * time.Second)
			require.NoError(t, all.Context().Err())
			require.NoError(t, all.Release(ctx))
			time.Sleep(time.Second)
			w.free(c, names...)
			c.Close()
		})
	}
}

// While a slot moves, all are still taken one after the other; and those of several slots are.
func TestAllWhileASlotMoves(t *testing.T) {
	t.Parallel()
	in(t, 3, func(w *world) {
		clients := []*client.Client{w.client("g", client.Config{}), w.client("h", client.Config{})}
		one, two := []string{"{t}a", "{t}b", "{t}c"}, []string{"{t}a", "{u}a", "{t}c", "w"}
		slot := int(cluster.Slot("lock:{t}a"))
		var mu sync.Mutex
		inside := map[string]int{}
		step := func(names []string, by int) {
			mu.Lock()
			defer mu.Unlock()
			for _, name := range names {
				if inside[name] += by; inside[name] > 1 {
					t.Errorf("%d are inside %s", inside[name], name)
				}
			}
		}
		var work, moves sync.WaitGroup
		done := make(chan bool)
		moves.Go(func() {
			r := rand.New(rand.NewPCG(1, 1))
			for nodes := w.Nodes(); ; {
				select {
				case <-done:
					return
				case <-time.After(time.Duration(r.IntN(30)) * time.Millisecond):
				}
				if to := nodes[r.IntN(3)]; to != w.Owner("lock:{t}a") {
					w.StartMigration(slot, to)
					for w.MoveKeys(slot, 1) > 0 {
						time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
					}
					w.FinishMigration(slot)
				}
			}
		})
		for i := range 6 {
			work.Go(func() {
				r := rand.New(rand.NewPCG(2, uint64(i)))
				for range 30 {
					names := [][]string{one, one[1:], two}[r.IntN(3)]
					within, cancel := context.WithTimeout(ctx, 10*time.Second)
					require.NoError(t, clients[i%2].DoAll(within, names, func(ctx context.Context) error {
						step(names, 1)
						defer step(names, -1)
						time.Sleep(time.Duration(r.IntN(5)) * time.Millisecond)
						return ctx.Err()
					}))
					cancel()
				}
			})
		}
		work.Wait()
		close(done)
		moves.Wait()
		time.Sleep(time.Second)
		w.free(clients[0], one...)
		w.free(clients[1], two...)
		for _, c := range clients {
			c.Close()
		}
	})
}

// What a joinable owner got is confirmed if a ReleaseOwner crosses it: within MaxWait too.
func TestAConfirmationEndsWithTheWait(t *testing.T) {
	in(t, 1, func(w *world) {
		c := w.client("h", client.Config{})
		defer c.Close()
		_, err := c.Inspect(w.Context(), "a")
		require.NoError(t, err)
		w.Delay(redis.Path{Node: w.first}, 150*time.Millisecond)
		var released sync.WaitGroup
		released.Go(func() {
			time.Sleep(time.Millisecond)
			_ = c.ReleaseOwner(w.Context(), "a", "job 7")
		})
		began := time.Now()
		_, err = c.Acquire(w.Context(), "a", client.WithOwner("job 7"), client.WithMaxWait(400*time.Millisecond))
		require.ErrorIs(t, err, client.ErrTimeout)
		require.Less(t, time.Since(began), 410*time.Millisecond)
		released.Wait()
	})
}
