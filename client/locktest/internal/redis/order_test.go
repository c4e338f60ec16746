package redis_test

import (
	"bufio"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

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
	bubble(t, redis.Options{Latency: -1, Hooks: hooks}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:6379")
		conn := must(w.Host("h").Dial(ctx, "a:6379", &net.Dialer{}, nil))
		_, _ = io.WriteString(conn, "*2\r\n$9\r\nSUBSCRIBE\r\n$2\r\nch\r\n")
		go func() {
			r := bufio.NewReader(conn)
			for range 6 { // the confirmation
				_, _ = r.ReadString('\n')
			}
			if _, err := r.ReadString('\n'); err == nil {
				got.Store(true)
			}
		}()
		time.Sleep(time.Second)
		run(t, n, "redis.call('PUBLISH', 'ch', 'x') redis.call('SET', keys[1], '1')", "k")
		time.Sleep(time.Second)
		if !got.Load() || early.Load() {
			t.Errorf("arrived: %v, before the function had ended: %v", got.Load(), early.Load())
		}
		_ = conn.Close()
	})
}
