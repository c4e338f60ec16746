package several

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// However the network was: when all servers can be reached again, nothing is left of those who gave up,
// long before leases end, and those who hold do so still. Leases of the simulation end before that.
func TestNothingIsLeftWhereItCanBeReached(t *testing.T) {
	for seed := range uint64(3) {
		on(t, 5, func(b *several) {
			names := []string{"x", "y", "z"}
			var clients []*client.Client
			for range 3 {
				clients = append(clients, b.client(client.Config{Lease: 40 * time.Second, Guard: 40 * time.Second}))
			}
			time.Sleep(45 * time.Second)
			held := b.hold(clients[0], "held")
			end := time.Now().Add(15 * time.Second)
			var work sync.WaitGroup
			var won atomic.Int32
			for i := range 9 {
				work.Go(func() {
					r := rand.New(rand.NewPCG(seed, uint64(i)))
					for time.Now().Before(end) {
						within, cancel := context.WithTimeout(b.Context(), time.Duration(1+r.IntN(1500))*time.Millisecond)
						var l interface{ Release(context.Context) error }
						var err error
						c, name := clients[i%3], names[r.IntN(3)]
						switch r.IntN(3) {
						case 0:
							l, err = c.TryAcquire(within, name)
						case 1:
							l, err = c.AcquireAll(within, names[:2])
						default:
							l, err = c.Acquire(within, name)
						}
						if err == nil {
							won.Add(1)
							time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
							_ = l.Release(within)
						}
						if r.IntN(80) == 0 {
							_, _ = c.Break(within, name, "")
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
				[]func(){
					func() { b.world.Stall(p, redis.Direction(r.IntN(3))) }, func() { b.world.Resume(p) },
					func() { b.world.Drop(p) }, func() { b.world.Reset(p) }, func() { b.world.Refuse(p, r.IntN(2) == 0) },
					func() { b.world.Delay(p, time.Duration(r.IntN(200))*time.Millisecond) }, func() { b.world.Delay(p, 0) },
				}[r.IntN(7)]()
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
					if got[6] != functions.WhyFree { // else it is the record of a break
						b.Errorf("seed %d: server %d has %s: %v", seed, i, name, n.Hash("lock:"+name))
					}
				}
			}
			if held.Context().Err() == nil {
				require.GreaterOrEqual(b, b.votes("held", held.Owner()), 3)
			}
			require.Greater(b, won.Load(), int32(10))
			_ = held.Release(b.Context())
		})
	}
}
