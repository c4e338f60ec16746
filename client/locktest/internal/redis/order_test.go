package redis_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// A server writes to sockets when a function has ended. So whoever watches the server knows of the
// function before a subscriber can know of its message, also where packets arrive at once.
func TestMessagesOfAFunctionFollowIt(t *testing.T) {
	var got, early atomic.Bool
	hooks := redis.Hooks{Write: func(redis.Write) {
		for range 1000 {
			runtime.Gosched()
		}
		early.Store(got.Load())
	}}
	bed.In(t, redis.Options{Latency: -1, Hooks: hooks}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:1")
		c := dial(t, w, "h", "a:1")
		c.send("SUBSCRIBE", "ch")
		go func() {
			for range 7 { // the confirmation, and the beginning of the message
				_, _ = c.reply(time.Minute)
			}
			got.Store(true)
		}()
		time.Sleep(time.Second)
		run(t, n, "redis.call('PUBLISH', 'ch', 'x') redis.call('SET', keys[1], '1')", "k")
		time.Sleep(time.Second)
		if !got.Load() || early.Load() {
			t.Errorf("arrived: %v, before the function had ended: %v", got.Load(), early.Load())
		}
	})
}
