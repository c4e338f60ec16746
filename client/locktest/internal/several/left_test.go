package several

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// However the network was: when all servers can be reached again, nothing is left of those who gave up,
// long before leases end, and those who hold do so still.
func TestNothingIsLeftWhereItCanBeReached(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		on(t, 5, func(b *bed) {
			names := []string{"x", "y", "z"}
			var clients []*client.Client
			for range 3 {
				clients = append(clients, b.client(client.Config{Lease: 40 * time.Second, Guard: 40 * time.Second}))
			}
			time.Sleep(45 * time.Second)
			held, err := clients[0].Acquire(context.Background(), "held")
			require.NoError(b, err)
			end := time.Now().Add(15 * time.Second)
			var work sync.WaitGroup
			won := 0
			var mu sync.Mutex
			for i := range 9 {
				work.Go(func() {
					r := rand.New(rand.NewPCG(seed, uint64(i)))
					for time.Now().Before(end) {
						within, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.IntN(1500))*time.Millisecond)
						var l *client.Lock
						c, name := clients[i%3], names[r.IntN(3)]
						switch r.IntN(4) {
						case 0:
							l, _ = c.TryAcquire(within, name)
						case 1:
							if all, err := c.AcquireAll(within, names[:2]); err == nil {
								time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
								_ = all.Release(within)
							}
						case 2:
							if r.IntN(20) == 0 {
								_, _ = c.Break(within, name, "")
							}
						default:
							l, _ = c.Acquire(within, name)
						}
						if l != nil {
							mu.Lock()
							won++
							mu.Unlock()
							time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
							_ = l.Release(within)
						}
						cancel()
						time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
					}
				})
			}
			r := rand.New(rand.NewPCG(seed, 99))
			for time.Now().Before(end) {
				time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
				p := redis.Path{Host: []string{"", "h1", "h2", "h3"}[r.IntN(4)], Node: b.nodes[r.IntN(5)]}
				switch r.IntN(7) {
				case 0:
					b.world.Stall(p, redis.Direction(r.IntN(3)))
				case 1:
					b.world.Resume(p)
				case 2:
					b.world.Drop(p)
				case 3:
					b.world.Reset(p)
				case 4:
					b.world.Refuse(p, r.IntN(2) == 0)
				case 5:
					b.world.Delay(p, time.Duration(r.IntN(200))*time.Millisecond)
				case 6:
					b.world.Delay(p, 0)
				}
			}
			work.Wait()
			b.world.Resume(redis.Path{})
			b.world.Refuse(redis.Path{}, false)
			b.world.Delay(redis.Path{}, 0)
			// A try that hangs takes a sixth of the lease, and the next one comes within 10 s.
			time.Sleep(20 * time.Second)
			for _, name := range names {
				for i, n := range b.nodes {
					got := n.Do("FCALL_RO", functions.Inspect, "1", "lock:"+name).([]any)
					if f := n.Hash("lock:" + name); got[6] != functions.WhyFree { // else it is the record of a break
						b.Errorf("seed %d: server %d has %s: %v", seed, i, name, f)
					}
				}
			}
			if held.Context().Err() == nil {
				require.GreaterOrEqual(b, b.votes("held", held.Owner()), 3)
			} else {
				b.Log(seed, context.Cause(held.Context()))
			}
			require.Greater(b, won, 10)
			_ = held.Release(context.Background())
			for _, c := range clients {
				c.Close()
			}
		})
	}
}
