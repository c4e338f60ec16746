package redis_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// Six clients on three locks, an hour of it: what a schedule of the fuzzer costs. The wall time is
// logged.
func TestHourOfSixClientsOnThreeLocks(t *testing.T) {
	wall, entries, calls := time.Now(), 0, int64(0)
	bubble(t, redis.Options{Seed: 1}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:6379")
		load(t, n)
		var mu sync.Mutex
		inside := map[string]int{}
		var wg sync.WaitGroup
		end := time.Now().Add(time.Hour)
		for i := range 6 {
			c := open(t, w, fmt.Sprint("host", i), "a:6379")
			r := rand.New(rand.NewPCG(1, uint64(i)))
			wg.Go(func() {
				defer c.Close()
				for time.Now().Before(end) {
					name := fmt.Sprint("x", r.IntN(3))
					l := must(c.Acquire(ctx, name))
					mu.Lock()
					entries++
					if inside[name]++; inside[name] > 1 {
						t.Errorf("two inside %s", name)
					}
					mu.Unlock()
					time.Sleep(time.Duration(r.IntN(20_000_000)) * time.Microsecond)
					mu.Lock()
					inside[name]--
					mu.Unlock()
					if err := l.Release(ctx); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Duration(r.IntN(5_000_000)) * time.Microsecond)
				}
			})
		}
		wg.Wait()
		calls = n.Calls()
	})
	took := time.Since(wall)
	t.Logf("an hour in %v: %.1f hours per second, %d entries, %d calls", took, 1/took.Seconds(), entries, calls)
}

func BenchmarkAcquireRelease(b *testing.B) {
	w := redis.New(redis.Options{})
	defer w.Close()
	n := w.Node("a:6379")
	if err, bad := n.Do("FUNCTION", "LOAD", source).(redis.Error); bad {
		b.Fatal(err)
	}
	for b.Loop() {
		n.Do("FCALL", "holdfast_acquire", "1", "x", "owner", "30000")
		n.Do("FCALL", "holdfast_release", "1", "x", "owner")
	}
}
