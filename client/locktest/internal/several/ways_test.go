package several

import (
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// ways are how a server can be lost.
var ways = map[string]func(b *bed, n *redis.Node){
	"killed":  func(b *bed, n *redis.Node) { n.Kill() },
	"paused":  func(b *bed, n *redis.Node) { n.Pause() },
	"stalled": func(b *bed, n *redis.Node) { b.world.Stall(redis.Path{Node: n}, redis.Both) },
	"mute":    func(b *bed, n *redis.Node) { b.world.Stall(redis.Path{Node: n}, redis.ToClient) },
	"empty":   func(b *bed, n *redis.Node) { n.Restart(redis.Nothing); b.load(n) },
	"bare":    func(b *bed, n *redis.Node) { n.Restart(redis.Nothing) },
	"slow":    func(b *bed, n *redis.Node) { b.world.Delay(redis.Path{Node: n}, 300*time.Millisecond) },
	"full":    func(b *bed, n *redis.Node) { n.Set(redis.Full, true) },
	"busy":    func(b *bed, n *redis.Node) { n.Set(redis.Busy, true) },
	"loading": func(b *bed, n *redis.Node) { n.Set(redis.Loading, true) },
	"ahead":   func(b *bed, n *redis.Node) { n.SetClock(70*time.Second, 0) },
	"behind":  func(b *bed, n *redis.Node) { n.SetClock(-70*time.Second, 0) },
}
