package jobs

import (
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// world is what locktest does not show: which way the network keeps what is sent, and for how long.
type world struct {
	*testing.T
	*redis.World
	node    *redis.Node
	clients []*client.Client
}

// in runs a test in a world with one server. It closes the clients that the test opened.
func in(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opt := redis.Options{Latency: 200 * time.Microsecond}
		opt.Unmodelled = func(_, text string) { t.Errorf("not modelled: %s", text) }
		w := &world{T: t, World: redis.New(opt)}
		w.node = w.Node("s:6379")
		require.Equal(t, functions.Library, w.node.Do("FUNCTION", "LOAD", functions.Source))
		test(w)
		for _, c := range w.clients {
			c.Close()
		}
		time.Sleep(time.Minute)
		w.Close()
		time.Sleep(10 * time.Second)
	})
}

func (w *world) client(cfg client.Config) *client.Client {
	w.Helper()
	cfg.Lease, cfg.Logger = 3*time.Second, slog.New(slog.NewTextHandler(io.Discard, nil))
	c, err := client.Open(rueidis.ClientOption{InitAddress: []string{w.node.Addr()}, ForceSingleClient: true,
		MaxFlushDelay: -1, DialCtxFn: w.Host("h").Dial}, cfg)
	require.NoError(w, err)
	w.clients = append(w.clients, c)
	return c
}

// do calls a function for a lock, as somebody else.
func (w *world) do(function, name string, args ...string) any {
	return w.node.Do(append([]string{"FCALL", function, "1", "lock:" + name}, args...)...)
}

// stalls are what the network keeps: nothing, requests, answers.
var stalls = []redis.Direction{-1, redis.ToServer, redis.ToClient}

func (w *world) stall(way redis.Direction) {
	if way >= 0 {
		w.Stall(redis.Path{Host: "h"}, way)
	}
}

func (w *world) resume() { w.Resume(redis.Path{}) }

// What a joinable owner got is confirmed if a ReleaseOwner crosses it: within MaxWait too.
func TestAConfirmationEndsWithTheWait(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.client(client.Config{})
		_, err := c.Inspect(ctx, "a")
		require.NoError(t, err)
		w.Delay(redis.Path{Node: w.node}, 150*time.Millisecond)
		time.AfterFunc(time.Millisecond, func() { _ = c.ReleaseOwner(ctx, "a", "job 7") })
		spend(t, 400*time.Millisecond, 410*time.Millisecond, func() {
			_, err = c.Acquire(ctx, "a", client.WithOwner("job 7"), client.WithMaxWait(400*time.Millisecond))
			require.ErrorIs(t, err, client.ErrTimeout)
		})
	})
}
