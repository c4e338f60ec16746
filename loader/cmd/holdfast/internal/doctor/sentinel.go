package doctor

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/cluster"
)

// before is by how many milliseconds a primary must stop earlier than the sentinels find it down:
// see "Guarded locks" of the contract.
const before = 2000

func (e *examination) sentinels(ctx context.Context) {
	for i := range e.deployments {
		d := &e.deployments[i]
		for _, addr := range d.Sentinels {
			e.sentinel(ctx, d, addr)
		}
	}
}

func (e *examination) sentinel(ctx context.Context, d *Deployment, addr string) {
	ctx, cancel := context.WithTimeout(ctx, e.opt.Timeout)
	defer cancel()
	redis, err := d.DialSentinel(ctx, addr)
	if err != nil {
		e.find("sentinel-unreachable", addr, "start it again, or take its address away", "%v", err)
		return
	}
	defer redis.Close()
	ask := func(words ...string) rueidis.RedisResult {
		return redis.Do(ctx, redis.B().Arbitrary("SENTINEL").Args(words...).Build())
	}
	if err := ask("CKQUORUM", d.Master).Error(); err != nil {
		e.find("sentinel-quorum", addr, "start the sentinels again, or SENTINEL SET "+d.Master+" quorum N; "+
			"a majority must be up", "%v", err)
	}
	about, err := ask("MASTER", d.Master).AsStrMap()
	if err != nil {
		e.find("not-checked", addr, "give --sentinel-user a user who may use SENTINEL", "SENTINEL MASTER: %v", err)
		return
	}
	down := number(about, "down-after-milliseconds")
	for _, n := range e.nodes {
		lag := number(n.set, "min-replicas-max-lag")
		on := number(n.set, "min-replicas-to-write") > 0 && lag > 0
		if n.of == d && n.role == cluster.Primary && on && lag*1000+before > down {
			longer := max(10_000, lag*1000+before)
			e.find("sentinel-lag", addr, fmt.Sprintf("SENTINEL SET %s down-after-milliseconds %d at every sentinel, "+
				"or a smaller min-replicas-max-lag at every server", d.Master, longer),
				"down-after-milliseconds is %d, and min-replicas-max-lag %d s: it must be 2 s shorter", down, lag)
		}
	}
}
